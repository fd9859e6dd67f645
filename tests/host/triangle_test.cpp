// How a triangle is cut: each element of it once, in launches that kernels serve.
#include "hgemm.h"
#include "src/plan/triangle.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hg {
namespace {

Problem problem_of_size(int64_t n, int64_t batch)
{
    Problem p{};
    p.m = p.n = n;
    p.batch = batch;
    return p;
}

// How often each element (i, j) of each problem is computed.
std::vector<int> count_elements(const Problem& p, int64_t block, int64_t most)
{
    const int64_t n = p.n;
    std::vector<int> counts(static_cast<size_t>(p.batch * n * n));
    for_each_piece(p, block, most, [&](const TrianglePiece& piece) {
        EXPECT_TRUE(piece.count == 1 || piece.problems == 1);
        EXPECT_TRUE(piece.count == 1 || !p.has_arrays());
        EXPECT_LE(piece.on_diagonal ? piece.batch() : 0, most);
        for (int64_t z = piece.problem; z < piece.problem + piece.problems; ++z)
            for (int64_t part = 0; part < piece.count; ++part)
                for (int64_t i = 0; i < piece.rows; ++i)
                    for (int64_t j = 0; j < piece.columns; ++j)
                        ++counts[static_cast<size_t>((z * n + piece.row + part * piece.step + i) * n +
                                                     piece.column + part * piece.step + j)];
    });
    return counts;
}

void expect_upper_half_once(const Problem& p, int64_t block, int64_t most)
{
    const std::vector<int> counts = count_elements(p, block, most);
    for (int64_t z = 0; z < p.batch; ++z)
        for (int64_t i = 0; i < p.n; ++i)
            for (int64_t j = 0; j < p.n; ++j) {
                const bool computed = i <= j || i / block == j / block;
                ASSERT_EQ(counts[static_cast<size_t>((z * p.n + i) * p.n + j)], computed)
                    << p.n << " in blocks of " << block << ": " << i << ", " << j;
            }
}

TEST(Triangle, PiecesCoverTheUpperHalfOnce)
{
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 40})
        for (const int64_t block : {1, 2, 3, 8, 40, 64})
            for (const int64_t batch : {1, 3})
                for (const int64_t most : {1, 2, 100}) {
                    Problem p = problem_of_size(n, batch);
                    expect_upper_half_once(p, block, most);
                    p.d.array = &p.d.ptr;
                    expect_upper_half_once(p, block, most);
                }
}

TEST(Triangle, LaunchesAreFew)
{
    const auto launches = [](int64_t n, int64_t batch, int64_t block) {
        int count = 0;
        for_each_piece(problem_of_size(n, batch), block, INT64_MAX, [&](const TrianglePiece&) { ++count; });
        return count;
    };
    EXPECT_EQ(launches(4096, 1, 4096), 1);
    EXPECT_EQ(launches(4096, 1, 512), 4);
    EXPECT_EQ(launches(4000, 1, 512), 7);
    EXPECT_EQ(launches(1024, 90, 512), 3);
}

// A column-major call's upper half is the lower one of the row-major problem, and rows of A and B go with
// it.
TEST(Triangle, LowerPiecesAreTransposedOnes)
{
    Problem p{};
    p.n = p.m = 8;
    p.k = 4;
    p.batch = 2;
    p.type_ab = Type::BF16;
    p.a = {reinterpret_cast<void*>(uintptr_t{0x1000}), nullptr, 5, 1, 100, 0};
    p.b = {reinterpret_cast<void*>(uintptr_t{0x2000}), nullptr, 1, 9, 200, 0};
    p.d = {reinterpret_cast<void*>(uintptr_t{0x3000}), nullptr, 10, 300, Type::F32, 0};
    p.triangle = Triangle::Lower;
    p.mirrored = true;
    const Problem part = problem_of(p, {0, 2, 2, 3, 1, 0, false, 1, 1});
    EXPECT_EQ(part.triangle, Triangle::Whole);
    EXPECT_FALSE(part.mirrored);
    EXPECT_EQ(part.m, 3);
    EXPECT_EQ(part.n, 2);
    EXPECT_EQ(part.batch, 1);
    EXPECT_EQ(part.a.ptr, reinterpret_cast<void*>(uintptr_t{0x1000 + 2 * (100 + 2 * 5)}));
    EXPECT_EQ(part.b.ptr, reinterpret_cast<void*>(uintptr_t{0x2000 + 2 * 200}));
    EXPECT_EQ(part.d.ptr, reinterpret_cast<void*>(uintptr_t{0x3000 + 4 * (300 + 2 * 10)}));
    const Problem blocks = problem_of(p, {0, 2, 0, 2, 4, 2, true, 0, 1});
    EXPECT_EQ(blocks.batch, 4);
    EXPECT_EQ(blocks.a.batch_stride, 10);
    EXPECT_EQ(blocks.b.batch_stride, 2);
    EXPECT_EQ(blocks.d.batch_stride, 22);
}

}  // namespace
}  // namespace hg
