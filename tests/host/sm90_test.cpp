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

}  // namespace
}  // namespace hg
