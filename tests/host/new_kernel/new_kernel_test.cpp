// A kernel is one line: sm90's tables and choice compiled with a line in kernels.def that costs.def, the
// networks and tuned.def do not know.
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace hg {
namespace {

constexpr const char* name = "sm90_pingpong_128x136_2x1";
constexpr int added = sm90::kernel_named(name);

const Device h200 = [] {
    Device d{};
    d.cc = 90;
    d.sm_count = 132;
    d.smem_per_block = sm90::smem_limit;
    d.memory_bandwidth = 4'900'000'000'000;
    return d;
}();

Problem tn(int64_t m, int64_t n, int64_t k)
{
    Problem p{};
    p.m = m;
    p.n = n;
    p.k = k;
    p.batch = 1;
    p.type_ab = p.d.type = p.c.type = Type::BF16;
    void* const aligned = reinterpret_cast<void*>(0x10000);
    p.a = {aligned, nullptr, k, 1, 0};
    p.b = {aligned, nullptr, k, 1, 0};
    p.d = {aligned, nullptr, n, 0, Type::BF16};
    p.alpha = 1;
    return p;
}

Plan plan_of(const Problem& p, const char* kernel)
{
    Options o{};
    std::strcpy(o.kernel, kernel);
    o.workspace = size_t{64} << 20;
    o.counters = sm90::counter_words(h200, o.workspace);
    Plan plan{};
    EXPECT_TRUE(sm90::choose(p, h200, o, plan)) << plan.refusal;
    return plan;
}

TEST(NewKernel, IsInTheTable)
{
    EXPECT_STREQ(sm90::kernels[added].name, name);
    EXPECT_EQ(sm90::configs[added].tile_n, 136);
}

// Of the same schedule and cluster, and the tile beside it.
TEST(NewKernel, CostsWhatItsNearestRelativeDoes)
{
    const int nearest[] = {sm90::kernel_named("sm90_pingpong_128x128_2x1"),
                           sm90::kernel_named("sm90_pingpong_128x144_2x1")};
    const auto distance = [](int kernel) {
        return sm90::distance(sm90::configs[added], sm90::configs[kernel]);
    };
    for (int kernel = 0; kernel < sm90::gemm_count; ++kernel)
        if (kernel != added) {
            EXPECT_GE(distance(kernel), std::min(distance(nearest[0]), distance(nearest[1])));
        }
}

TEST(NewKernel, IsJudgedByTheModelAlone)
{
    const Problem p = tn(4096, 4096, 4096);
    const sm90::Candidate candidate{added, false, 1, false, 16 * 31, false};
    const double us = sm90::predict(p, candidate, 132).us;
    EXPECT_GT(us, 10);
    const sm90::Corrected corrected = sm90::corrected_us(p, candidate, us, 132, sm90::Card::H200);
    EXPECT_EQ(corrected.early, us);
    EXPECT_EQ(corrected.late, us);
}

TEST(NewKernel, CanBeForced)
{
    const Plan plan = plan_of(tn(4096, 4096, 4096), name);
    EXPECT_EQ(plan.kernel, added);
    EXPECT_EQ(plan.why, Why::Forced);
}

// Where its tile fits and no other does: N is a whole number of its tiles, in one wave.
TEST(NewKernel, IsChosenWhereItIsExpectedToBeFastest)
{
    bool chosen = false;
    for (int64_t tiles_m = 2; tiles_m <= 64 && !chosen; tiles_m += 2)
        for (int64_t tiles_n = 1; tiles_n <= 64 && !chosen; ++tiles_n)
            for (const int64_t k : {1024, 4096, 16384})
                chosen = chosen || plan_of(tn(128 * tiles_m, 136 * tiles_n, k), "").kernel == added;
    EXPECT_TRUE(chosen);
}

}  // namespace
}  // namespace hg
