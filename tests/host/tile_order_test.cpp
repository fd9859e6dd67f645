// The order of tiles, and the division behind it.
#include "arch/common/tile_order.hpp"
#include "arch/common/triangle_order.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <vector>

namespace hg {
namespace {

TEST(Divisor, GivesTheQuotient)
{
    constexpr int32_t most = std::numeric_limits<int32_t>::max();
    std::mt19937 random(1);
    for (int i = 0; i < 200'000; ++i) {
        const int32_t value = 1 + static_cast<int32_t>(random() >> (2 + random() % 30));
        const Divisor d = divisor(value);
        const int32_t multiple = static_cast<int32_t>(random() % (most / value)) * value;
        for (const int32_t n : {0, value - 1, value, multiple, multiple + value - 1, most - 1, most})
            ASSERT_EQ(d.quotient(n), n / value) << n << " / " << value;
    }
}

TEST(TileOrder, VisitsEveryTileOnce)
{
    struct Case {
        int tiles_m, tiles_n, group;
    };
    for (const auto [tiles_m, tiles_n, group] : {Case{1, 1, 8}, {7, 5, 4}, {16, 3, 8}, {3, 40, 16}}) {
        const TileGrid grid = tile_grid(tiles_m, tiles_n, group);
        std::set<std::vector<int>> seen;
        const int tiles = tiles_m * tiles_n * 3;
        for (int i = 0; i < tiles; ++i) {
            const Tile t = tile_at(grid, i);
            EXPECT_TRUE(t.m >= 0 && t.m < tiles_m && t.n >= 0 && t.n < tiles_n && t.batch < 3);
            seen.insert({t.m, t.n, t.batch});
        }
        EXPECT_EQ(seen.size(), static_cast<size_t>(tiles));
    }
}

TEST(TileOrder, WalksAGroupOfRowsColumnByColumn)
{
    const TileGrid grid = tile_grid(8, 4, 2);
    const std::vector<Tile> expected{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}};
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(tile_at(grid, i).m, expected[i].m);
        EXPECT_EQ(tile_at(grid, i).n, expected[i].n);
    }
    EXPECT_EQ(tile_at(grid, 8).m, 2);
}

TEST(TriangleOrder, EachTileOnAndAboveTheDiagonalOnce)
{
    for (const int32_t rows : {1, 2, 7, 8, 9, 15, 16, 17, 40}) {
        const TriangleOrder order = triangle_order(rows);
        std::vector<int> counts(static_cast<size_t>(rows) * rows * 3);
        for (int32_t i = 0; i < 3 * tiles_of_triangle(rows); ++i) {
            const Tile t = tile_of_triangle(order, i);
            ASSERT_TRUE(0 <= t.m && t.m <= t.n && t.n < rows && t.batch < 3) << rows << ": " << i;
            ++counts[static_cast<size_t>((t.batch * rows + t.m) * rows + t.n)];
        }
        for (int32_t z = 0; z < 3; ++z)
            for (int32_t m = 0; m < rows; ++m)
                for (int32_t n = 0; n < rows; ++n)
                    EXPECT_EQ(counts[static_cast<size_t>((z * rows + m) * rows + n)], m <= n) << rows;
    }
}

TEST(TriangleOrder, BandsAreWalkedColumnByColumn)
{
    const TriangleOrder order = triangle_order(10);
    const auto expect = [&](int32_t index, int32_t m, int32_t n) {
        const Tile t = tile_of_triangle(order, index);
        EXPECT_TRUE(t.m == m && t.n == n) << index << ": " << t.m << ", " << t.n;
    };
    expect(0, 0, 0);
    expect(1, 0, 1);
    expect(35, 7, 7);
    expect(36, 0, 8);
    expect(51, 7, 9);
    expect(52, 8, 8);
    expect(54, 9, 9);
}

}  // namespace
}  // namespace hg
