// What hgemm_set_sm_count() leaves to choose from: no GPU is needed.
#include "devices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace hg {
namespace {

TEST(SmLimit, ShrinksTheGrid)
{
    NEEDS_CUDA_BUILD();
    Options options{};
    options.sm_limit = 16;
    const Backend* candidates[max_backends];
    int count = 0;
    ASSERT_EQ(find_backends(h200, options, candidates, count), ok);
    Plan plan;
    ASSERT_EQ(make_plan(linear_layer(4096, 4096, 4096), h200, options,
                        {candidates, static_cast<size_t>(count)}, plan),
              ok);
    EXPECT_LE(plan.grid, 16);
    EXPECT_GE(plan.grid, 1);
}

// For every backend and kind of operand. There is no PDL then, since a kernel that has started early and
// waits would occupy more SMs.
TEST(SmLimit, HoldsForAll)
{
    NEEDS_CUDA_BUILD();
    Problem odd = linear_layer(1023, 1023, 1023), empty = linear_layer(4096, 4096, 4096);
    Problem unaligned = linear_layer(2048, 2048, 2048);
    unaligned.a.ptr = reinterpret_cast<void*>(0x1002);
    empty.k = 0;
    const Problem problems[] = {linear_layer(4096, 4096, 4096),
                                linear_layer(1, 4097, 4097),
                                linear_layer(64, 4096, 512),
                                odd,
                                unaligned,
                                empty};
    for (const Device& device : {a100, h200, b200, rtx5090})
        for (const int limit : {1, 4, 16})
            for (const size_t workspace : {size_t{0}, size_t{192} << 20})
                for (const Problem& problem : problems) {
                    Options options{};
                    options.sm_limit = limit;
                    options.workspace = workspace;
                    const Backend* candidates[max_backends];
                    int count = 0;
                    ASSERT_EQ(find_backends(device, options, candidates, count), ok);
                    Plan plan{};
                    ASSERT_EQ(
                        make_plan(problem, device, options, {candidates, static_cast<size_t>(count)}, plan),
                        ok);
                    char text[512];
                    plan.print(text, sizeof text);
                    EXPECT_LE(plan.grid, limit) << text;
                    EXPECT_FALSE(plan.uses_pdl() || plan.pdl == Pdl::Early) << text;
                }
}

Plan plan_on(const Device& device, const Problem& problem, int limit)
{
    Options options{};
    options.sm_limit = limit;
    options.workspace = size_t{192} << 20;
    const Backend* candidates[max_backends];
    int count = 0;
    EXPECT_EQ(find_backends(device, options, candidates, count), ok);
    const std::span<const Backend* const> found(candidates, static_cast<size_t>(count));
    options.counters = counter_words(device, found, options.workspace);
    Plan plan{};
    EXPECT_EQ(make_plan(problem, device, options, found, plan), ok);
    return plan;
}

// The largest cluster that runs wherever `free` SMs of an H200 are left: at worst one of each pair, the
// others evenly in all GPCs. GPCs and four lone pairs, counted in pairs.
int placed_at_worst(int free)
{
    const int gpcs[] = {4, 8, 8, 8, 8, 8, 9, 9, 1, 1, 1, 1}, pairs = 66;
    for (int each = 0;; ++each) {
        int places = pairs;
        for (const int gpc : gpcs)
            places += std::min(each, gpc);
        if (places >= free)
            return std::max(1, 2 * each);
    }
}

// Other kernels may hold all SMs but so many, for ever if they wait for this one.
TEST(SmLimit, LeavesClustersThatFindPlaces)
{
    NEEDS_CUDA_BUILD();
    Problem groups = linear_layer(32768, 4096, 4096), unaligned = linear_layer(1023, 1025, 4097);
    groups.batch = 8;
    groups.b.batch_stride = 4096 * 4096;
    groups.groups = {reinterpret_cast<const int64_t*>(0x1000), GroupsBy::Offsets, false, false, 0};
    Problem columns = linear_layer(4097, 1, 8192);
    columns.a.row_stride = 1, columns.a.k_stride = 4097;
    const Problem problems[] = {linear_layer(4096, 4096, 4096),
                                linear_layer(512, 512, 16384),
                                linear_layer(512, 16384, 512),
                                linear_layer(64, 512, 8192),
                                unaligned,
                                columns,
                                groups};
    for (const Problem& problem : problems)
        for (int limit = 1; limit < h200.sm_count; ++limit) {
            const Plan plan = plan_on(h200, problem, limit);
            char text[512];
            plan.print(text, sizeof text);
            EXPECT_LE(plan.cluster, placed_at_worst(limit)) << limit << " SMs: " << text;
        }
    for (const int limit : {1, 16, 74})
        EXPECT_LE(plan_on(b200, problems[0], limit).cluster, 1);
    // Most SMs have whole pairs among them, and without a limit there is nothing to find.
    EXPECT_EQ(plan_on(h200, problems[0], 112).cluster, 2);
    EXPECT_EQ(plan_on(b200, problems[0], 128).cluster, 2);
    EXPECT_GT(plan_on(h200, problems[3], 0).cluster, 1);
    EXPECT_GT(plan_on(h200, problems[3], h200.sm_count).cluster, 1);
    Options forced{};
    forced.sm_limit = 2;
    std::strcpy(forced.kernel, "sm90_pingpong_128x128_2x1");
    const Backend* candidates[max_backends];
    int count = 0;
    ASSERT_EQ(find_backends(h200, forced, candidates, count), ok);
    Plan plan{};
    EXPECT_EQ(make_plan(problems[0], h200, forced, {candidates, static_cast<size_t>(count)}, plan), ok);
}

}  // namespace
}  // namespace hg
