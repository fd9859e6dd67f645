// Where vectors of an unaligned operand may be read: white-box tests of pack_operand() of sm80.
#include "arch/sm80/pack.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hg::sm80 {
namespace {

// Bytes from an operand's pointer to begin and end. A has 5 rows of 3 K's, in lines of 7 elements.
struct Extent {
    int64_t begin, end;
    bool operator==(const Extent&) const = default;
};

Extent extent_of(int64_t batch, int64_t batch_stride, bool k_major)
{
    constexpr uintptr_t at = 4096;
    Problem p{};
    p.k = 3;
    p.batch = batch;
    const Operand a{reinterpret_cast<const void*>(at), nullptr, k_major ? 7 : 1, k_major ? 1 : 7,
                    batch_stride};
    const OperandParams params = pack_operand(a, p, 5);
    return {static_cast<int64_t>(params.begin - at), static_cast<int64_t>(params.end - at)};
}

TEST(Sm80, VectorsAreReadWithinTheOperandsOfABatch)
{
    EXPECT_EQ(extent_of(1, 0, true), (Extent{0, 2 * (4 * 7 + 3)}));
    EXPECT_EQ(extent_of(1, 0, false), (Extent{0, 2 * (2 * 7 + 5)}));
    EXPECT_EQ(extent_of(4, 0, true), (Extent{0, 2 * (4 * 7 + 3)}));
    EXPECT_EQ(extent_of(4, 100, true), (Extent{0, 2 * (300 + 4 * 7 + 3)}));
    EXPECT_EQ(extent_of(4, -100, true), (Extent{-600, 2 * (4 * 7 + 3)}));
}

TEST(Sm80, ArraysHaveNoExtent)
{
    Problem p{};
    p.k = 3;
    p.batch = 2;
    const void* const pointers[2] = {};
    const OperandParams params = pack_operand({nullptr, pointers, 7, 1, 0}, p, 5);
    EXPECT_EQ(params.begin, 0u);
    EXPECT_EQ(params.end, 0u);
}

}  // namespace
}  // namespace hg::sm80
