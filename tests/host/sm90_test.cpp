// White-box tests of what sm90 packs: no GPU is needed.
#include "arch/common/host/pack.hpp"
#include "arch/sm90/backend.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "arch/sm90/remap.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace hg {
namespace {

// K tiles that a split-K kernel with `grid` CTAs prefetches.
int32_t prefetched(const Problem& p, int tile_m, int tile_n, uint32_t grid, bool stream_k = false)
{
    Plan plan{};
    plan.grid = grid;
    plan.sm90.stream_k = stream_k;
    return sm90::count_prefetched(p, {sm90::Schedule::SplitK, tile_m, tile_n, 4, 1, 1, 1, 1}, plan, 132);
}

TEST(Sm90, PrefetchesNoMoreKTilesThanThereAre)
{
    EXPECT_EQ(prefetched(linear_layer(8, 64, 100), 64, 64, 1), 2);
    EXPECT_EQ(prefetched(linear_layer(512, 512, 512), 64, 64, 64), 8);
    EXPECT_EQ(prefetched(linear_layer(64, 64, 8192), 64, 64, 1), 16);
}

TEST(Sm90, PrefetchesLessForWideTiles)
{
    const Problem p = linear_layer(4096, 4096, 4096);
    EXPECT_EQ(prefetched(p, 64, 96, 132), 4);
    EXPECT_EQ(prefetched(p, 128, 128, 132), 3);
    EXPECT_EQ(prefetched(p, 128, 224, 132), 1);
}

TEST(Sm90, PrefetchesLittleWhereTheLastWaveIsNearlyEmpty)
{
    const Problem p = linear_layer(64, 18432, 7168);
    EXPECT_EQ(prefetched(p, 64, 64, 132 + 32), 2);
    EXPECT_EQ(prefetched(p, 64, 64, 132 + 33), 4);
    EXPECT_EQ(prefetched(p, 64, 64, 264), 4);
}

// With stream-K a CTA need not begin with the first K tiles of a tile.
TEST(Sm90, PrefetchesNothingWithStreamK)
{
    EXPECT_EQ(prefetched(linear_layer(4096, 4096, 4096), 128, 128, 132, true), 0);
}

TEST(Sm90, PrefetchesNothingWhereAlphaMayBeZero)
{
    Problem p = linear_layer(512, 512, 512);
    p.alpha = 0.0f;
    EXPECT_EQ(prefetched(p, 64, 64, 64), 0);
    p.alpha = 1.0f;
    const float on_the_device = 1.0f;
    p.alpha_device = &on_the_device;
    EXPECT_EQ(prefetched(p, 64, 64, 64), 0);
}

// The boxes of a tile cover it, the last one ends with it, and each begins at a multiple of eight columns.
TEST(Sm90, BoxesOfATileCoverIt)
{
    for (const sm90::Config& c : sm90::configs) {
        if (c.is_split())
            continue;
        for (const int width : {32, sm90::box_columns(c)}) {
            int end = 0;
            for (int i = 0; i < sm90::box_count(c.tile_n, width); ++i) {
                const int start = sm90::box_start(c.tile_n, i, width);
                EXPECT_LE(start, end) << c.tile_m << " x " << c.tile_n;
                EXPECT_EQ(start % 8, 0) << c.tile_m << " x " << c.tile_n;
                end = start + width;
            }
            EXPECT_EQ(end, c.tile_n) << c.tile_m << " x " << c.tile_n;
        }
    }
}

// As measured for one wave of clusters: 1024 x 1024 and 512 x 1024 in tiles of 64 x 128 to 64 x 64.
TEST(Sm90, TheRasterReadsFewRows)
{
    using sm90::rasters_along_n;
    const auto tile = [](int tile_m, int tile_n, int cluster_m, int cluster_n) {
        return sm90::Config{sm90::Schedule::SplitK, tile_m, tile_n, 8, 1, cluster_m, cluster_n, 1};
    };
    // The larger side of a cluster is shared.
    EXPECT_FALSE(rasters_along_n(tile(64, 128, 1, 2), 16, 4));
    EXPECT_TRUE(rasters_along_n(tile(128, 64, 2, 1), 4, 16));
    EXPECT_FALSE(rasters_along_n(tile(64, 96, 1, 1), 8, 11));
    EXPECT_TRUE(rasters_along_n(tile(96, 64, 1, 1), 11, 8));
    // Equal sides: across the cluster, or along the shorter dimension.
    EXPECT_TRUE(rasters_along_n(tile(64, 128, 2, 1), 8, 8));
    EXPECT_FALSE(rasters_along_n(tile(128, 64, 1, 2), 8, 8));
    EXPECT_FALSE(rasters_along_n(tile(64, 64, 1, 1), 8, 16));
    EXPECT_TRUE(rasters_along_n(tile(64, 64, 1, 1), 16, 8));
    // A long run along the smaller side reads more than short ones.
    EXPECT_FALSE(rasters_along_n(tile(128, 80, 1, 1), 2, 52));
}

// The GPC remap is a permutation, and clusters of one GPC have consecutive numbers.
TEST(Sm90, ClustersAreNumberedGpcByGpc)
{
    const sm90::Config c{sm90::Schedule::SplitK, 64, 64, 8, 1, 1, 1, 1};
    for (int ctas = 1; ctas <= sm90::max_cluster; ++ctas)
        for (int clusters = 1; clusters <= sm90::resident_clusters(c.ctas_per_sm, ctas, 132); ++clusters) {
            uint8_t remap[sm90::max_remapped_clusters];
            sm90::remap_by_gpc(ctas, clusters, remap);
            std::vector<bool> seen(clusters);
            for (int i = 0; i < clusters; ++i) {
                ASSERT_LT(remap[i], clusters) << ctas << ' ' << clusters;
                ASSERT_FALSE(seen[remap[i]]) << ctas << ' ' << clusters;
                seen[remap[i]] = true;
            }
        }
    uint8_t remap[sm90::max_remapped_clusters];
    sm90::remap_by_gpc(1, 132, remap);
    for (int i = 0; i < 132; ++i)
        EXPECT_EQ(remap[i], i);
    // Clusters of two: four lone pairs of SMs, then one cluster in each of eight GPCs in turn; the first
    // GPC holds four.
    sm90::remap_by_gpc(2, 66, remap);
    EXPECT_EQ(remap[4], 0);
    EXPECT_EQ(remap[12], 1);
    EXPECT_EQ(remap[5], 4);
    EXPECT_EQ(remap[36], 8);
    EXPECT_EQ(remap[0], 62);
}

// As measured: 512 x 1024 in tiles of 64 x 64, four by four in each GPC; 256 x 2048 in tiles of 128 x 64, K
// cut in two slices.
TEST(Sm90, TilesOfAGpcReadLeast)
{
    const auto raster = [](int tile_m, int tile_n, int split, int64_t along_m, int64_t along_n, bool pdl) {
        Plan plan{};
        plan.cluster = split;
        plan.tiles = along_m * along_n;
        plan.grid = plan.tiles * split;
        plan.pdl = pdl ? Pdl::Early : Pdl::Off;
        const sm90::Config c{sm90::Schedule::SplitK, tile_m, tile_n, 8, 1, 1, 1, 1};
        return sm90::choose_raster(c, plan, along_m, along_n, 12288, 132);
    };
    const sm90::Raster square = raster(64, 64, 1, 8, 16, false);
    EXPECT_EQ(square.group, 4);
    EXPECT_FALSE(square.remapped);  // single CTAs fill GPC after GPC anyway
    const sm90::Raster halves = raster(128, 64, 2, 2, 32, false);
    EXPECT_TRUE(halves.remapped);
    EXPECT_EQ(halves.along_n ? 8 / halves.group : halves.group, 2);
    EXPECT_FALSE(raster(128, 64, 2, 2, 32, true).remapped);
    EXPECT_FALSE(raster(128, 64, 2, 4, 32, false).remapped);  // more than one wave
}

// Outputs that need registers, or time in the epilogue, are left to kernels that have these.
TEST(Sm90, OutputsGoToKernelsThatTakeThem)
{
    Problem p = linear_layer(8192, 6144, 4096);
    const auto takes = [&](const char* kernel) {
        Options o{};
        std::strcpy(o.kernel, kernel);
        Plan plan{};
        return sm90::choose(p, h200, o, plan);
    };
    const char *cooperative = "sm90_coop_128x256_2x1", *widest = "sm90_pingpong_128x192_2x1",
               *wide = "sm90_pingpong_128x144_2x1", *narrow = "sm90_pingpong_128x128_2x1";
    for (const char* kernel : {cooperative, widest, wide, narrow})
        EXPECT_TRUE(takes(kernel)) << kernel;
    p.bias.along = BiasAlong::Columns;
    p.activation = Activation::Relu;
    for (const char* kernel : {cooperative, widest, wide, narrow})
        EXPECT_TRUE(takes(kernel)) << kernel;
    p.activation = Activation::GeluTanh;
    EXPECT_TRUE(!takes(cooperative) && !takes(widest) && takes(wide) && takes(narrow));
    p.c = p.d;
    p.beta = 1;
    p.activation = Activation::Relu;
    EXPECT_TRUE(takes(cooperative) && !takes(widest) && takes(wide) && takes(narrow));
    p.aux = p.d;
    EXPECT_TRUE(!takes(cooperative) && !takes(widest) && takes(wide) && takes(narrow));
    ++p.c.ld;  // TMA cannot address C
    EXPECT_TRUE(!takes(cooperative) && !takes(widest) && !takes(wide) && takes(narrow));
}

// General where TMA cannot move an operand of the epilogue, or GELU is by erf; with swap_ab also for C and
// aux.
TEST(Sm90, EpilogueOfEachOutput)
{
    using sm90::Epilogue;
    const sm90::Config c{sm90::Schedule::PingPong, 128, 128, 6, 2, 1, 1, 1};
    const Problem plain = linear_layer(512, 512, 512);
    EXPECT_EQ(sm90::epilogue_of(c, plain, false), Epilogue::Plain);
    EXPECT_EQ(sm90::epilogue_of(c, plain, true), Epilogue::Plain);
    Problem p = plain;
    p.c = p.aux = p.d;
    p.activation = Activation::Silu;
    EXPECT_EQ(sm90::epilogue_of(c, p, false), Epilogue::Fused);
    EXPECT_EQ(sm90::epilogue_of(c, p, true), Epilogue::General);
    p.c.type = Type::F32;
    EXPECT_EQ(sm90::epilogue_of(c, p, false), Epilogue::Fused);
    p.d.type = p.aux.type = Type::F32;
    EXPECT_EQ(sm90::epilogue_of(c, p, false), Epilogue::General);
    p = plain;
    p.activation = Activation::GeluErf;
    EXPECT_EQ(sm90::epilogue_of(c, p, false), Epilogue::General);
}

// explain tells what was decided beside the kernel.
// Of A * transpose(A), both halves: by whole tiles, unless these leave nearly half of the SMs idle.
TEST(Sm90, TrianglesStreamWhereALastWaveIsNearlyEmpty)
{
    const auto planned = [](int64_t n, int64_t k, Triangle triangle) {
        Problem p = linear_layer(n, n, k);
        p.triangle = triangle;
        p.mirrored = triangle == Triangle::Upper;
        Options options{};
        options.workspace = size_t{1} << 28;
        options.counters = 1 << 20;
        Plan plan{};
        EXPECT_TRUE(sm90::choose(p, h200, options, plan)) << plan.refusal;
        EXPECT_TRUE(sm90::is_triangle(plan.kernel));
        return plan;
    };
    EXPECT_EQ(planned(4096, 1024, Triangle::Upper).grid, 132);
    EXPECT_EQ(planned(4096, 1024, Triangle::Lower).tiles, 528);
    EXPECT_TRUE(planned(2048, 2048, Triangle::Upper).sm90.stream_k);
    EXPECT_FALSE(planned(2048, 512, Triangle::Upper).sm90.stream_k);
    EXPECT_FALSE(planned(3072, 3072, Triangle::Upper).sm90.stream_k);
}

TEST(Sm90, PlansTellTheirDetails)
{
    Options o{};
    std::strcpy(o.kernel, "sm90_pingpong_128x128_2x1");
    o.stream_k = StreamK::Off;
    Plan plan{};
    const Problem p = linear_layer(16384, 12288, 4096);
    ASSERT_TRUE(sm90::choose(p, h200, o, plan));
    plan.backend = &sm90_backend;
    const auto says = [&](const char* words) {
        char text[512];
        plan.print(text, sizeof text);
        return std::strstr(text, words) != nullptr;
    };
    EXPECT_TRUE(says(" prefetch=3 evict_first=d epilogue=plain ")) << plan.sm90.prefetched;
    plan.sm90.raster_along_n = true;
    plan.sm90.raster_group = 5;
    plan.sm90.prefetched = 7;
    plan.sm90.d_once = false;
    plan.sm90.epilogue = sm90::Epilogue::Fused;
    EXPECT_TRUE(says(" raster=n5 prefetch=7 epilogue=fused "));
    plan.sm90.a_once = true;
    plan.swap_ab = true;  // A of the MMA is B
    EXPECT_TRUE(says(" raster=m5 prefetch=7 evict_first=b epilogue=fused "));
    plan.sm90.persistent = false;
    EXPECT_TRUE(says(" evict_first=b workspace="));
}

// The last tile ends with the matrix, unless D may be C, sums depend on the tile, or it would begin between
// two vectors of a contiguous dimension.
TEST(Sm90, LastTilesOverlap)
{
    const sm90::Config c{sm90::Schedule::SplitK, 64, 96, 6, 1, 1, 1, 1};
    const auto last = [&](const Problem& p, bool swap_ab, bool stream_k = false) {
        Plan plan{};
        plan.swap_ab = swap_ab;
        plan.sm90.stream_k = stream_k;
        const sm90::LastTile tile = sm90::last_tile(c, p, plan);
        return std::pair(tile.m, tile.n);
    };
    const Problem layer = linear_layer(193, 2112, 7168);
    EXPECT_EQ(last(layer, false), std::pair(193 - 64, 2112 - 96));
    EXPECT_EQ(last(layer, true), std::pair(2112 - 64, 193 - 96));
    EXPECT_EQ(last(layer, false, true), std::pair(200, 2112));
    EXPECT_EQ(last(linear_layer(50, 90, 64), false), std::pair(56, 96));
    EXPECT_EQ(last(linear_layer(193, 2111, 64), false), std::pair(193 - 64, 2112));
    Problem p = layer;
    p.c = p.d;
    p.beta = 1;
    EXPECT_EQ(last(p, false), std::pair(200, 2112));
    p = layer;
    std::swap(p.a.row_stride, p.a.k_stride);  // contiguous along M
    EXPECT_EQ(last(p, false), std::pair(200, 2112 - 96));
}

// The schedule is dynamic if there is a word for the tile counter, enough waves and enough K tiles.
TEST(Sm90, LongGemmsAreScheduledDynamically)
{
    Options o{};
    o.workspace = 4;
    o.counters = 1;
    std::strcpy(o.kernel, "sm90_pingpong_128x128_2x1");
    const auto is_dynamic = [&](int64_t m, int64_t k) {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(m, 4096, k), h200, o, plan));
        EXPECT_EQ(plan.workspace, plan.sm90.dynamic_schedule ? 4U : 0U);
        return plan.sm90.dynamic_schedule;
    };
    EXPECT_TRUE(is_dynamic(4096, 4096));
    EXPECT_FALSE(is_dynamic(1536, 4096));
    EXPECT_FALSE(is_dynamic(4096, 1024));
    o.counters = 0;
    EXPECT_FALSE(is_dynamic(4096, 4096));
}

// Forces a kernel and `split`, with room for `arrivals` and `sums` and not a word more.
Options global_split(const char* kernel, int split, size_t arrivals, size_t sums)
{
    Options o{};
    std::strcpy(o.kernel, kernel);
    o.split = split;
    o.swap_ab = SwapAb::Off;
    o.counters = arrivals + sums;
    o.workspace = sums * sizeof(float);
    return o;
}

// Slices wait for each other, so all CTAs must be resident, and each slice needs room for its partial sums.
TEST(Sm90, SlicesAddUpInGlobalMemory)
{
    const Problem p = linear_layer(256, 512, 8192);
    const Options o = global_split("sm90_splitk_global_64x64", 4, 32, size_t{32} * 4 * 64 * 64);
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

// Two tiles that share an operand are one cluster; each has its own partial sums and its own counter.
TEST(Sm90, PairsAddUpInGlobalMemory)
{
    const Problem p = linear_layer(384, 1120, 8192);
    const Options o = global_split("sm90_splitk_global_128x80_1x2", 3, 64, size_t{42} * 3 * 128 * 80);
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

// One slice has nothing to add up. Such a kernel is chosen only if forced, or by tuned.def.
TEST(Sm90, OneSliceNeedsNoWorkspace)
{
    Options o{};
    std::strcpy(o.kernel, "sm90_splitk_global_128x64");
    Plan plan{};
    ASSERT_TRUE(sm90::choose(linear_layer(8, 8, 8), h200, o, plan)) << plan.refusal;
    EXPECT_EQ(plan.split, 1);
    EXPECT_EQ(plan.workspace, 0U);
}

// GEMMs with small K, which write more than they read, are walked along the rows of D, also with swap_ab.
TEST(Sm90, SmallKIsWrittenRowByRow)
{
    const auto order = [](SwapAb swap_ab, int64_t m, int64_t n, int64_t k) {
        Options o{};
        std::strcpy(o.kernel, "sm90_pingpong_128x192_2x1");
        o.stream_k = StreamK::Off;
        o.swap_ab = swap_ab;
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(m, n, k), h200, o, plan)) << plan.refusal;
        const sm90::Config& c = sm90::configs[plan.kernel];
        const int64_t mma_m = plan.swap_ab ? n : m, mma_n = plan.swap_ab ? m : n;
        const sm90::Raster found = sm90::choose_raster(c, plan, ceil_div(mma_m, c.tile_m * c.cluster_m),
                                                       ceil_div(mma_n, c.tile_n * c.cluster_n), k, 132);
        return std::pair(found.along_n == plan.swap_ab, found.group);
    };
    for (const SwapAb swap_ab : {SwapAb::Off, SwapAb::On}) {
        EXPECT_EQ(order(swap_ab, 8192, 16384, 64), std::pair(true, 1));
        EXPECT_EQ(order(swap_ab, 1024, 2048, 64).first, true);
        EXPECT_GT(order(swap_ab, 1024, 2048, 64).second, 1);
        EXPECT_LE(order(swap_ab, 16384, 12288, 256).second, 5);
        EXPECT_GT(order(swap_ab, 8192, 8192, 4096).second, 5);
    }
}

}  // namespace
}  // namespace hg
