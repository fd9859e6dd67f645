// White-box tests of overlap.hpp against all elements, one by one.
#include "src/check/overlap.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace hg {
namespace {

using test::Random;

std::set<int64_t> bytes_of(const Region& r)
{
    std::set<int64_t> bytes;
    for (int64_t line = 0; line < r.lines; ++line)
        for (int64_t byte = 0; byte < r.width; ++byte)
            bytes.insert(static_cast<int64_t>(r.begin) + line * r.pitch + byte);
    return bytes;
}

bool share(const std::set<int64_t>& x, const std::set<int64_t>& y)
{
    for (const int64_t byte : x)
        if (y.contains(byte))
            return true;
    return false;
}

Region draw_region(Random& random)
{
    const int64_t width = 1 + random.below(9);
    return {static_cast<uintptr_t>(1000 + random.below(120)), 1 + random.below(9), width + random.below(14),
            width};
}

TEST(Overlap, OfRegionsIsTold)
{
    Random random(1);
    int overlapping = 0;
    constexpr int count = 20000;
    for (int i = 0; i < count; ++i) {
        const Region x = draw_region(random), y = draw_region(random);
        const bool wanted = share(bytes_of(x), bytes_of(y));
        overlapping += wanted;
        ASSERT_EQ(overlap(x, y), wanted)
            << "from " << x.begin << " " << x.lines << " x " << x.pitch << ", " << x.width << " and from "
            << y.begin << " " << y.lines << " x " << y.pitch << ", " << y.width;
    }
    EXPECT_GT(overlapping, count / 10);
    EXPECT_LT(overlapping, count * 9 / 10);
}

TEST(Overlap, OfHugeRegionsIsTold)
{
    constexpr int64_t huge = int64_t{1} << 60;
    // Columns of one array of 2^20 rows: side by side, then with one in common.
    const Region left{0x1000, 1 << 20, huge >> 20, 64}, right{0x1040, 1 << 20, huge >> 20, 64};
    EXPECT_FALSE(overlap(left, right));
    EXPECT_TRUE(overlap(left, {0x103f, 1 << 20, huge >> 20, 64}));
    EXPECT_FALSE(overlap({0, 1, huge, huge}, {static_cast<uintptr_t>(huge), 1, huge, huge}));
    EXPECT_TRUE(overlap({0, 1, huge, huge}, {static_cast<uintptr_t>(huge) - 1, 1, huge, huge}));
    // Lines of 2 bytes, 3 * 2^40 and 2^40 + 1 apart.
    const Region odd{0, 1 << 20, (int64_t{1} << 40) + 1, 2};
    EXPECT_TRUE(overlap(odd, {uintptr_t{5}, 1 << 20, int64_t{3} << 40, 2}));
    EXPECT_FALSE(overlap({uintptr_t{8}, 2, (int64_t{1} << 40) + 1, 2},
                         {uintptr_t{5}, 1 << 20, int64_t{3} << 40, 2}));
}

TEST(Overlap, OfABatchIsTold)
{
    Random random(2);
    int apart = 0;
    for (int i = 0; i < 20000; ++i) {
        const int64_t width = 1 + random.below(8), pitch = width + random.below(20),
                      lines = 1 + random.below(6);
        const int64_t count = 1 + random.below(6), stride = random.below(121) - 60;
        const std::set<int64_t> first = bytes_of({1000, lines, pitch, width});
        int64_t wanted = 0;
        for (int64_t z = count - 1; z > 0; --z)
            if (share(first, bytes_of({static_cast<uintptr_t>(1000 + z * stride), lines, pitch, width})))
                wanted = z;
        apart += wanted == 0 && count > 1;
        ASSERT_EQ(overlapping_distance(stride, count, lines, pitch, width), wanted)
            << count << " times " << lines << " x " << pitch << ", " << width << ", " << stride << " apart";
    }
    EXPECT_GT(apart, 2000);
}

TEST(Overlap, OfAHugeBatchIsTold)
{
    constexpr int64_t huge = int64_t{1} << 60;
    EXPECT_EQ(overlapping_distance(64, huge / 64, 1, 64, 64), 0);
    EXPECT_EQ(overlapping_distance(63, huge / 64, 1, 64, 64), 1);
    // Heads that lie beside each other in lines of 4096.
    EXPECT_EQ(overlapping_distance(64, 64, 1 << 20, 4096, 64), 0);
    EXPECT_EQ(overlapping_distance(64, 65, 1 << 20, 4096, 64), 64);
    EXPECT_EQ(overlapping_distance(-64, 65, 1 << 20, 4096, 64), 64);
    EXPECT_EQ(overlapping_distance(INT64_MIN, INT64_MAX, 5, 8, 8), 0);
    EXPECT_EQ(overlapping_distance(INT64_MAX, INT64_MAX, 5, 8, 8), 0);
}

TEST(Overlap, ABatchAsOneRegionHasAllItsBytesAndNoMore)
{
    Random random(3);
    int whole = 0;
    for (int i = 0; i < 5000; ++i) {
        const Region problem = draw_region(random);
        const int64_t count = 1 + random.below(4);
        const int64_t strides[] = {0, problem.width, problem.lines * problem.pitch, random.below(100) - 20};
        const int64_t stride = random.pick(strides);
        const Region region = region_of_batch(problem, stride, count);
        std::set<int64_t> all;
        for (int64_t z = 0; z < count; ++z)
            all.merge(bytes_of({problem.begin + static_cast<uintptr_t>(z * stride), problem.lines,
                                problem.pitch, problem.width}));
        const std::set<int64_t> told = bytes_of(region);
        EXPECT_TRUE(told == all || told == bytes_of(problem));
        whole += count > 1 && stride != 0 && told == all;
    }
    EXPECT_GT(whole, 500);
}

}  // namespace
}  // namespace hg
