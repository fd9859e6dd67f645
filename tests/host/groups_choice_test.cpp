// White-box tests of the choice of kernels for groups of rows: no GPU is needed.
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/kernels.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace hg {
namespace {

const int64_t* const on_device = reinterpret_cast<const int64_t*>(0x1000);

// `m` rows of all groups, each times a matrix of its own.
Problem contiguous(int64_t m, int64_t n, int64_t k, int64_t groups)
{
    Problem p = linear_layer(m, n, k);
    p.batch = groups;
    p.b.batch_stride = n * k;
    p.groups = {on_device, GroupsBy::Offsets, false, false, 0};
    return p;
}

// Room for `m` rows in each group.
Problem masked(int64_t m, int64_t n, int64_t k, int64_t groups)
{
    Problem p = contiguous(m, n, k, groups);
    p.groups = {on_device, GroupsBy::Counts, false, false, 0};
    p.a.batch_stride = m * k;
    p.d.batch_stride = m * n;
    return p;
}

std::string kernel_for(const Problem& p, const Device& device = h200)
{
    return choose(device, p, "", "", size_t{192} << 20).kernel;
}

Plan plan_of(const Problem& p, Options o)
{
    o.workspace = size_t{192} << 20;
    Plan plan{};
    EXPECT_TRUE(sm90::choose(p, h200, o, plan)) << plan.refusal;
    return plan;
}

TEST(Groups, RowsDecide)
{
    NEEDS_CUDA_BUILD();
    EXPECT_EQ(kernel_for(contiguous(64, 1536, 2048, 128)), "sm90_grouped_splitk_64x16_occ2");
    EXPECT_EQ(kernel_for(contiguous(128 * 10, 1536, 2048, 128)), "sm90_grouped_splitk_64x16_occ2");
    EXPECT_EQ(kernel_for(contiguous(128 * 11, 1536, 2048, 128)), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(contiguous(8 * 11, 14336, 4096, 8)), "sm90_grouped_splitk_64x32_occ2");
    EXPECT_EQ(kernel_for(contiguous(8 * 24, 14336, 4096, 8)), "sm90_grouped_splitk_64x32_occ2");
    EXPECT_EQ(kernel_for(contiguous(8 * 25, 14336, 4096, 8)), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(contiguous(128 * 64, 1536, 2048, 128)), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(contiguous(128 * 65, 1536, 2048, 128)), "sm90_grouped_128x128_1x2");
    EXPECT_EQ(kernel_for(contiguous(8 * 4096, 14336, 4096, 8)), "sm90_grouped_128x160_1x2");
    EXPECT_EQ(kernel_for(contiguous(65536, 2048, 768, 128)), "sm90_grouped_128x160_1x2");
    Problem along_n = contiguous(8 * 4096, 14336, 4096, 8);
    along_n.b.row_stride = 1, along_n.b.k_stride = 14336;
    EXPECT_EQ(kernel_for(along_n), "sm90_grouped_128x128_1x2");
    EXPECT_EQ(kernel_for(masked(128, 4096, 7168, 32)), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(masked(1024, 4096, 7168, 32)), "sm90_grouped_128x128_1x2");
}

// The model counts the rows of one group for each, not those of all: else a kernel that reads element by
// element would seem faster.
TEST(Groups, ManyGroupsOfManyRowsBySm80)
{
    NEEDS_CUDA_BUILD();
    for (const int64_t rows : {256, 4096, 32768, 131072, 1048576})
        for (const int64_t groups : {1, 8, 128, 512}) {
            const std::string kernel = kernel_for(contiguous(rows, 2048, 768, groups), a100);
            EXPECT_EQ(kernel.find("_any_"), std::string::npos) << rows << " rows: " << kernel;
        }
}

// Where about a third of the CTAs would find no tile, short ones are too many.
TEST(Groups, FewRowsOfManyGroups)
{
    NEEDS_CUDA_BUILD();
    EXPECT_EQ(kernel_for(contiguous(128, 2048, 768, 128)), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(contiguous(128, 2048, 7168, 128)), "sm90_grouped_splitk_64x16_occ2");
    EXPECT_EQ(kernel_for(contiguous(128, 2048, 1024, 128)), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(contiguous(512, 2048, 1024, 128)), "sm90_grouped_splitk_64x16_occ2");
    EXPECT_EQ(kernel_for(contiguous(4096, 2048, 1024, 512)), "sm90_grouped_splitk_64x16_occ2");
    EXPECT_EQ(kernel_for(contiguous(40960, 2048, 1024, 4096)), "sm90_grouped_64x128");
    // A short K in few waves, and in many.
    EXPECT_EQ(kernel_for(contiguous(32, 2048, 768, 128)), "sm90_grouped_splitk_64x16_occ2");
    EXPECT_EQ(kernel_for(contiguous(512, 2048, 768, 128)), "sm90_grouped_64x128");
}

// A handle that may use some SMs starts no more CTAs.
TEST(Groups, FewRowsOnSomeSMs)
{
    NEEDS_CUDA_BUILD();
    const auto kernel_on = [](const Problem& p, int sms) {
        Options o{};
        o.sm_limit = sms;
        const Plan plan = plan_of(p, o);
        EXPECT_LE(plan.grid, sms);
        return std::string(sm90::kernels[plan.kernel].name);
    };
    EXPECT_EQ(kernel_on(contiguous(64, 1536, 2048, 128), 64), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_on(contiguous(2, 1536, 2048, 8), 64), "sm90_grouped_splitk_64x16_occ2");
    Problem gated = contiguous(64, 1536, 2048, 128);
    gated.activation = Activation::Silu;
    gated.gate = {768, INFINITY, 1, -0.0f};
    gated.d.ld = 768;
    EXPECT_EQ(kernel_on(gated, 64), "sm90_gated_grouped_64x128");
}

// What kernels for few rows do not serve.
TEST(Groups, FewRowsByOthers)
{
    NEEDS_CUDA_BUILD();
    Problem p = contiguous(64, 1536, 2048, 128);
    p.beta = 1;
    p.c = p.d;
    EXPECT_EQ(kernel_for(p), "sm90_grouped_64x128");
    EXPECT_EQ(kernel_for(masked(8, 1536, 2048, 128)), "sm90_grouped_64x128");
    EXPECT_EQ(choose(h200, contiguous(64, 1536, 2048, 128), "", "sm90_grouped_64x128").kernel,
              "sm90_grouped_64x128");
    EXPECT_EQ(choose(h200, contiguous(4096, 1536, 2048, 8), "", "sm90_grouped_splitk_64x32_occ2").kernel,
              "sm90_grouped_splitk_64x32_occ2");
}

// A kernel that reads D as its C needs registers, which tiles of 160 columns do not leave.
TEST(Groups, WhatReadsD)
{
    NEEDS_CUDA_BUILD();
    Problem p = contiguous(8 * 4096, 14336, 4096, 8);
    p.beta = 1;
    p.c = p.d;
    EXPECT_EQ(kernel_for(p), "sm90_grouped_128x128_1x2");
}

TEST(Groups, TilesAreHandedOut)
{
    NEEDS_CUDA_BUILD();
    const auto plan_with = [](const Problem& p, size_t counters) {
        Options o{};
        o.counters = counters;
        return plan_of(p, o);
    };
    const Problem longest = contiguous(8 * 4096, 14336, 4096, 8);
    EXPECT_TRUE(plan_with(longest, 1).sm90.dynamic_schedule);
    EXPECT_EQ(plan_with(longest, 1).workspace, 4u);
    EXPECT_FALSE(plan_with(longest, 0).sm90.dynamic_schedule);
    EXPECT_FALSE(plan_with(contiguous(8 * 4096, 14336, 1024, 8), 1).sm90.dynamic_schedule);  // short k
    EXPECT_FALSE(plan_with(contiguous(8 * 128, 512, 4096, 8), 1).sm90.dynamic_schedule);     // few tiles
    EXPECT_FALSE(plan_with(contiguous(64, 14336, 4096, 8), 1).sm90.dynamic_schedule);        // single CTAs
}

// The host plans one tile more for each contiguous group than its rows fill, and all tiles of a masked
// group's room.
TEST(Groups, TilesAtMost)
{
    NEEDS_CUDA_BUILD();
    Plan plan{};
    ASSERT_TRUE(sm90::choose(contiguous(640, 256, 256, 10), h200, Options{}, plan));
    EXPECT_EQ(plan.tiles, (640 + 10 * 63 + 63) / 64 * 2);
    EXPECT_EQ(plan.grid, plan.tiles);
    ASSERT_TRUE(sm90::choose(masked(100, 256, 256, 10), h200, Options{}, plan));
    EXPECT_EQ(plan.tiles, 10 * 2 * 2);
    ASSERT_TRUE(sm90::choose(contiguous(1 << 20, 16384, 256, 1024), h200, Options{}, plan));
    EXPECT_EQ(plan.grid, 132);
}

TEST(Groups, WhatIsForced)
{
    NEEDS_CUDA_BUILD();
    const Problem p = contiguous(640, 256, 256, 10);
    EXPECT_EQ(choose(h200, p, "", "sm90_grouped_128x128_1x2").kernel, "sm90_grouped_128x128_1x2");
    Options o{};
    std::strcpy(o.kernel, "sm90_pingpong_128x128");
    Plan plan{};
    EXPECT_FALSE(sm90::choose(p, h200, o, plan));
    std::strcpy(o.kernel, "sm90_grouped_64x128");
    EXPECT_FALSE(sm90::choose(linear_layer(640, 256, 256), h200, o, plan));
    o.split = 2;
    EXPECT_FALSE(sm90::choose(p, h200, o, plan));
}

// Other devices have sm80's kernels, and so has this one where there is no room for copies.
TEST(Groups, EveryDeviceHasAKernel)
{
    NEEDS_CUDA_BUILD();
    const Problem p = contiguous(640, 256, 256, 10);
    for (const Device& device : {a100, a10, b200, rtx5090})
        EXPECT_EQ(kernel_for(p, device).rfind("sm80_", 0), 0u) << device.cc;
    Problem odd = p;
    odd.b.row_stride = 257;
    EXPECT_EQ(choose(h200, odd, "", "", 0).kernel.rfind("sm80_any_", 0), 0u);
}

// Neither A nor B is read: there is nothing to address.
TEST(Groups, NoOperands)
{
    NEEDS_CUDA_BUILD();
    Problem p = contiguous(640, 256, 256, 10);
    p.k = 0;
    p.a = p.b = {};
    EXPECT_EQ(kernel_for(p), "sm90_grouped_64x128");
}

}  // namespace
}  // namespace hg
