// White-box tests of what sm90 packs: no GPU is needed.
#include "arch/sm90/rows.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

namespace hg {
namespace {

TEST(Sm90, AsksL2ForNoMoreThanThereIs)
{
    EXPECT_EQ(sm90::count_prefetched(linear_layer(8, 64, 100), false), 2);
    EXPECT_EQ(sm90::count_prefetched(linear_layer(512, 512, 512), false), 8);
    EXPECT_EQ(sm90::count_prefetched(linear_layer(64, 64, 8192), false), 16);
    EXPECT_EQ(sm90::count_prefetched(linear_layer(4096, 4096, 4096), false), 4);
}

// The k tiles of a streamed run are not a tile's first ones.
TEST(Sm90, AsksL2ForNothingOfAStream)
{
    EXPECT_EQ(sm90::count_prefetched(linear_layer(4096, 4096, 4096), true), 0);
}

TEST(Sm90, AsksL2ForNothingWhereAlphaMayBeZero)
{
    Problem p = linear_layer(512, 512, 512);
    p.alpha = 0.0f;
    EXPECT_EQ(sm90::count_prefetched(p, false), 0);
    p.alpha = 1.0f;
    const float on_the_device = 1.0f;
    p.alpha_device = &on_the_device;
    EXPECT_EQ(sm90::count_prefetched(p, false), 0);
}

// The boxes of a tile cover it, the last one ends with it, and none begins inside a block of eight y.
TEST(Sm90, BoxesOfATileCoverIt)
{
    for (const sm90::Config& c : sm90::configs) {
        if (c.is_split())
            continue;
        for (const int width : {32, sm90::box_columns(c)}) {
            int end = 0;
            for (int i = 0; i < sm90::box_count(c, width); ++i) {
                const int start = sm90::box_start(c, i, width);
                EXPECT_LE(start, end) << c.x << " x " << c.y;
                EXPECT_EQ(start % 8, 0) << c.x << " x " << c.y;
                end = start + width;
            }
            EXPECT_EQ(end, c.y) << c.x << " x " << c.y;
        }
    }
}

// As measured where clusters fill one wave: 1024 x 1024 and 512 x 1024 in tiles of 64 x 128 to 64 x 64.
TEST(Sm90, TilesFollowEachOtherWhereTheyReadLeast)
{
    using sm90::goes_along_y;
    const auto tile = [](int x, int y, int cluster, int across) {
        return sm90::Config{sm90::Kind::Split, x, y, 8, 1, cluster, across, 1};
    };
    // The larger side of a cluster is shared.
    EXPECT_FALSE(goes_along_y(tile(64, 128, 1, 2), 16, 4));
    EXPECT_TRUE(goes_along_y(tile(128, 64, 2, 1), 4, 16));
    EXPECT_FALSE(goes_along_y(tile(64, 96, 1, 1), 8, 11));
    EXPECT_TRUE(goes_along_y(tile(96, 64, 1, 1), 11, 8));
    // Equal sides: across the cluster, or along the shorter dimension.
    EXPECT_TRUE(goes_along_y(tile(64, 128, 2, 1), 8, 8));
    EXPECT_FALSE(goes_along_y(tile(128, 64, 1, 2), 8, 8));
    EXPECT_FALSE(goes_along_y(tile(64, 64, 1, 1), 8, 16));
    EXPECT_TRUE(goes_along_y(tile(64, 64, 1, 1), 16, 8));
    // A long run along the smaller side reads more than short ones.
    EXPECT_FALSE(goes_along_y(tile(128, 80, 1, 1), 2, 52));
}

// What TMA cannot store goes to kernels that have another way.
TEST(Sm90, WideAccumulatorsAreForOutputsThatTmaStores)
{
    Problem p = linear_layer(8192, 6144, 4096);
    const auto chosen = [&] {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(p, h200, Options{}, plan));
        return sm90::configs[plan.row];
    };
    ASSERT_TRUE(sm90::is_stored_by_tma(p));
    EXPECT_TRUE(sm90::stores_by_tma_only(chosen()));
    p.bias.along = BiasAlong::Columns;
    EXPECT_TRUE(sm90::is_stored_by_tma(p));
    p.activation = Activation::Relu;
    EXPECT_FALSE(sm90::is_stored_by_tma(p));
    EXPECT_FALSE(sm90::stores_by_tma_only(chosen()));
}

}  // namespace
}  // namespace hg
