// White-box tests of what sm90 packs: no GPU is needed.
#include "arch/common/pack.hpp"
#include "arch/sm90/order.hpp"
#include "arch/sm90/rows.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace hg {
namespace {

// k tiles that a kernel with so many CTAs asks for.
int32_t asked(const Problem& p, int x, int y, uint32_t grid, bool streams = false)
{
    Plan plan{};
    plan.grid = grid;
    plan.streams = streams;
    return sm90::count_prefetched(p, {sm90::Kind::Split, x, y, 4, 1, 1, 1, 1}, plan, 132);
}

TEST(Sm90, AsksL2ForNoMoreThanThereIs)
{
    EXPECT_EQ(asked(linear_layer(8, 64, 100), 64, 64, 1), 2);
    EXPECT_EQ(asked(linear_layer(512, 512, 512), 64, 64, 64), 8);
    EXPECT_EQ(asked(linear_layer(64, 64, 8192), 64, 64, 1), 16);
}

TEST(Sm90, AsksL2ForFewerWideTiles)
{
    const Problem p = linear_layer(4096, 4096, 4096);
    EXPECT_EQ(asked(p, 64, 96, 132), 4);
    EXPECT_EQ(asked(p, 128, 128, 132), 3);
    EXPECT_EQ(asked(p, 128, 224, 132), 1);
}

TEST(Sm90, AsksL2ForFewWhereTheLastWaveIsNearlyEmpty)
{
    const Problem p = linear_layer(64, 18432, 7168);
    EXPECT_EQ(asked(p, 64, 64, 132 + 32), 2);
    EXPECT_EQ(asked(p, 64, 64, 132 + 33), 4);
    EXPECT_EQ(asked(p, 64, 64, 264), 4);
}

// The k tiles of a streamed run are not a tile's first ones.
TEST(Sm90, AsksL2ForNothingOfAStream)
{
    EXPECT_EQ(asked(linear_layer(4096, 4096, 4096), 128, 128, 132, true), 0);
}

TEST(Sm90, AsksL2ForNothingWhereAlphaMayBeZero)
{
    Problem p = linear_layer(512, 512, 512);
    p.alpha = 0.0f;
    EXPECT_EQ(asked(p, 64, 64, 64), 0);
    p.alpha = 1.0f;
    const float on_the_device = 1.0f;
    p.alpha_device = &on_the_device;
    EXPECT_EQ(asked(p, 64, 64, 64), 0);
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

// Each cluster has a number of its own, and those of a GPC follow each other.
TEST(Sm90, ClustersAreNumberedGpcByGpc)
{
    const sm90::Config c{sm90::Kind::Split, 64, 64, 8, 1, 1, 1, 1};
    for (int ctas = 1; ctas <= sm90::max_cluster; ++ctas)
        for (int clusters = 1; clusters <= sm90::clusters_held(c.residents, ctas, 132); ++clusters) {
            uint8_t numbers[sm90::max_numbers];
            sm90::number_by_gpc(ctas, clusters, numbers);
            std::vector<bool> seen(clusters);
            for (int i = 0; i < clusters; ++i) {
                ASSERT_LT(numbers[i], clusters) << ctas << ' ' << clusters;
                ASSERT_FALSE(seen[numbers[i]]) << ctas << ' ' << clusters;
                seen[numbers[i]] = true;
            }
        }
    uint8_t numbers[sm90::max_numbers];
    sm90::number_by_gpc(1, 132, numbers);
    for (int i = 0; i < 132; ++i)
        EXPECT_EQ(numbers[i], i);
    // Pairs: four lone ones, then one of each of eight GPCs, of which the first has room for four.
    sm90::number_by_gpc(2, 66, numbers);
    EXPECT_EQ(numbers[4], 0);
    EXPECT_EQ(numbers[12], 1);
    EXPECT_EQ(numbers[5], 4);
    EXPECT_EQ(numbers[36], 8);
    EXPECT_EQ(numbers[0], 62);
}

// As measured: 512 x 1024 in 64 x 64, four by four tiles a GPC; 256 x 2048 in 128 x 64, halves of k in
// pairs.
TEST(Sm90, TilesOfAGpcReadLeast)
{
    const auto order = [](int x, int y, int split, int64_t along_x, int64_t along_y, bool overlaps) {
        Plan plan{};
        plan.cluster = split;
        plan.tiles = along_x * along_y;
        plan.grid = plan.tiles * split;
        plan.overlaps = overlaps;
        const sm90::Config c{sm90::Kind::Split, x, y, 8, 1, 1, 1, 1};
        return sm90::order_tiles(c, plan, along_x, along_y, 12288, 132);
    };
    const sm90::Order square = order(64, 64, 1, 8, 16, false);
    EXPECT_EQ(square.group, 4);
    EXPECT_FALSE(square.numbered);  // single CTAs come GPC by GPC anyway
    const sm90::Order halves = order(128, 64, 2, 2, 32, false);
    EXPECT_TRUE(halves.numbered);
    EXPECT_EQ(halves.along_y ? 8 / halves.group : halves.group, 2);
    EXPECT_FALSE(order(128, 64, 2, 2, 32, true).numbered);
    EXPECT_FALSE(order(128, 64, 2, 4, 32, false).numbered);  // more than one wave
}

// Outputs that take registers or time go to kernels that have them.
TEST(Sm90, OutputsGoToKernelsThatTakeThem)
{
    Problem p = linear_layer(8192, 6144, 4096);
    const auto takes = [&](const char* kernel) {
        Options o{};
        std::strcpy(o.kernel, kernel);
        Plan plan{};
        return sm90::choose(p, h200, o, plan);
    };
    const char *cooperative = "sm90_128x256_c2", *widest = "sm90_pp_128x192_c2",
               *wide = "sm90_pp_128x144_c2", *narrow = "sm90_pp_128x128_c2";
    for (const char* kernel : {cooperative, widest, wide, narrow})
        EXPECT_TRUE(takes(kernel)) << kernel;
    p.bias.along = BiasAlong::Columns;
    p.activation = Activation::Relu;
    for (const char* kernel : {cooperative, widest, wide, narrow})
        EXPECT_TRUE(takes(kernel)) << kernel;
    p.activation = Activation::GeluTanh;
    EXPECT_TRUE(!takes(cooperative) && !takes(widest) && takes(wide) && takes(narrow));
    p.c = p.aux = p.d;
    p.beta = 1;
    EXPECT_TRUE(!takes(cooperative) && !takes(widest) && takes(wide) && takes(narrow));
    ++p.c.ld;  // not for TMA
    EXPECT_TRUE(!takes(cooperative) && !takes(widest) && !takes(wide) && takes(narrow));
}

// In pieces what TMA cannot move or does not know; C and aux in place only as they lie.
TEST(Sm90, OutputsAreFinishedWhereTheyCan)
{
    using sm90::Store;
    const sm90::Config c{sm90::Kind::PingPong, 128, 128, 6, 2, 1, 1, 1};
    const Problem plain = linear_layer(512, 512, 512);
    EXPECT_EQ(sm90::store_of(c, plain, false), Store::Plain);
    EXPECT_EQ(sm90::store_of(c, plain, true), Store::Plain);
    Problem p = plain;
    p.c = p.aux = p.d;
    p.activation = Activation::Silu;
    EXPECT_EQ(sm90::store_of(c, p, false), Store::InPlace);
    EXPECT_EQ(sm90::store_of(c, p, true), Store::Pieces);
    p.c.type = Type::F32;
    EXPECT_EQ(sm90::store_of(c, p, false), Store::InPlace);
    p.d.type = p.aux.type = Type::F32;
    EXPECT_EQ(sm90::store_of(c, p, false), Store::Pieces);
    p = plain;
    p.activation = Activation::GeluErf;
    EXPECT_EQ(sm90::store_of(c, p, false), Store::Pieces);
}

// Where there is a word to count with, and enough to do between two numbers.
TEST(Sm90, LongProductsAreHandedOut)
{
    Options o{};
    o.workspace = 4;
    o.counters = 1;
    std::strcpy(o.kernel, "sm90_pp_128x128_c2");
    const auto handed = [&](int64_t m, int64_t k) {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(m, 4096, k), h200, o, plan));
        EXPECT_EQ(plan.workspace, plan.hands_out ? 4U : 0U);
        return plan.hands_out;
    };
    EXPECT_TRUE(handed(4096, 4096));
    EXPECT_FALSE(handed(1536, 4096));
    EXPECT_FALSE(handed(4096, 1024));
    o.counters = 0;
    EXPECT_FALSE(handed(4096, 4096));
}

// A kernel, plain, in so many slices, with room for their `sums` and not a word more.
Options meeting(const char* kernel, int split, size_t arrivals, size_t sums)
{
    Options o{};
    std::strcpy(o.kernel, kernel);
    o.split = split;
    o.orientation = Orientation::Plain;
    o.counters = arrivals + sums;
    o.workspace = sums * sizeof(float);
    return o;
}

// Slices that wait for each other run side by side, on every multiprocessor once at most, and have words
// of their own to leave their sums in.
TEST(Sm90, SlicesMeetInGlobalMemory)
{
    const Problem p = linear_layer(256, 512, 8192);
    const Options o = meeting("sm90_gsplit_64x64", 4, 32, size_t{32} * 4 * 64 * 64);
    Plan plan{};
    ASSERT_TRUE(sm90::choose(p, h200, o, plan)) << plan.refusal;
    EXPECT_EQ(plan.grid, 128);
    EXPECT_EQ(plan.cluster, 1);
    EXPECT_EQ(plan.tiles, 32);
    EXPECT_EQ(plan.workspace, o.workspace);

    Options narrow = o, wordless = o, deep = o, invariant = o;
    narrow.workspace -= 1;
    wordless.counters -= 1;
    deep.split = 5;
    deep.counters *= 2;
    deep.workspace *= 2;
    invariant.mode = Mode::BatchInvariant;
    for (const Options& refused : {narrow, wordless, deep, invariant})
        EXPECT_FALSE(sm90::choose(p, h200, refused, plan));
}

// Two tiles that share an operand are one cluster; each has words of its own, also to count who has come.
TEST(Sm90, PairsMeetInGlobalMemory)
{
    const Problem p = linear_layer(384, 1120, 8192);
    const Options o = meeting("sm90_gsplit_128x80_c1x2", 3, 64, size_t{42} * 3 * 128 * 80);
    Plan plan{};
    ASSERT_TRUE(sm90::choose(p, h200, o, plan)) << plan.refusal;
    EXPECT_EQ(plan.grid, 126);
    EXPECT_EQ(plan.cluster, 2);
    EXPECT_EQ(plan.tiles, 21);
    EXPECT_EQ(plan.workspace, o.workspace);

    Options wordless = o;
    wordless.counters -= 1;
    EXPECT_FALSE(sm90::choose(p, h200, wordless, plan));
}

// One slice has nobody to meet: such a kernel is only taken if asked for, or where it was measured.
TEST(Sm90, OneSliceMeetsNobody)
{
    Options o{};
    std::strcpy(o.kernel, "sm90_gsplit_128x64");
    Plan plan{};
    ASSERT_TRUE(sm90::choose(linear_layer(8, 8, 8), h200, o, plan)) << plan.refusal;
    EXPECT_EQ(plan.split, 1);
    EXPECT_EQ(plan.workspace, 0U);
}

// Products that write more than they read are walked along the rows of D, plain or swapped.
TEST(Sm90, ThinProductsAreWrittenRowByRow)
{
    const auto order = [](Orientation orientation, int64_t m, int64_t n, int64_t k) {
        Options o{};
        std::strcpy(o.kernel, "sm90_pp_128x192_c2");
        o.sharing = Sharing::Whole;
        o.orientation = orientation;
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(m, n, k), h200, o, plan)) << plan.refusal;
        const sm90::Config& c = sm90::configs[plan.row];
        const int64_t x = plan.swapped ? n : m, y = plan.swapped ? m : n;
        const sm90::Order found =
            sm90::order_tiles(c, plan, ceil_div(x, c.x * c.cluster), ceil_div(y, c.y * c.across), k, 132);
        return std::pair(found.along_y == plan.swapped, found.group);
    };
    for (const Orientation orientation : {Orientation::Plain, Orientation::Swapped}) {
        EXPECT_EQ(order(orientation, 8192, 16384, 64), std::pair(true, 1));
        EXPECT_EQ(order(orientation, 1024, 2048, 64).first, true);
        EXPECT_GT(order(orientation, 1024, 2048, 64).second, 1);
        EXPECT_LE(order(orientation, 16384, 12288, 256).second, 5);
        EXPECT_GT(order(orientation, 8192, 8192, 4096).second, 5);
    }
}

}  // namespace
}  // namespace hg
