// What a handle remembers of calls: nothing is mistaken for another, and a model's products all fit.
#include "src/run/plan_cache.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>

#include <memory>

namespace hg {
namespace {

constexpr Workspace none{nullptr, 0, nullptr, 0, 0};

Request product(int64_t weight)
{
    Request r;
    hgemm_args_init(&r, sizeof r);
    r.m = 4096;
    r.n = 8;
    r.k = r.lda = r.ldb = 7168;
    r.ldc = r.ldd = 4096;
    r.a = reinterpret_cast<const void*>(uintptr_t{0x7f0000000000} +
                                        static_cast<uintptr_t>(weight) * 0x3800000);
    return r;
}

void keep(PlanCache& cache, const Request& request, const Workspace& workspace, int row)
{
    PlanCache::Launch& place = cache.entry_for(request, workspace);
    place.plan.kernel = row;
    cache.keep(place);
}

int row_of(const PlanCache& cache, const Request& request, const Workspace& workspace = none)
{
    const PlanCache::Launch* known = cache.find_launch(request, workspace);
    return known ? known->plan.kernel : -1;
}

TEST(PlanCache, HoldsTheProductsOfALargeModel)
{
    const auto cache = std::make_unique<PlanCache>();
    constexpr int products = 600;
    for (int i = 0; i < products; ++i)
        keep(*cache, product(i), none, i);
    for (int i = 0; i < products; ++i)
        EXPECT_EQ(row_of(*cache, product(i)), i);
}

TEST(PlanCache, ForgetsSomeWhenThereAreTooManyAndMixesNone)
{
    const auto cache = std::make_unique<PlanCache>();
    constexpr int products = 20000;
    for (int i = 0; i < products; ++i)
        keep(*cache, product(i), none, i);
    int known = 0;
    for (int i = 0; i < products; ++i) {
        const int row = row_of(*cache, product(i));
        EXPECT_TRUE(row == -1 || row == i);
        known += row == i;
    }
    EXPECT_GT(known, 4000);
    EXPECT_EQ(row_of(*cache, product(products - 1)), products - 1);
}

TEST(PlanCache, TellsRequestsApartByEveryMember)
{
    const auto cache = std::make_unique<PlanCache>();
    const Request request = product(1);
    keep(*cache, request, none, 1);
    const auto differs = [&](auto change) {
        Request other = request;
        change(other);
        EXPECT_EQ(row_of(*cache, other), -1);
    };
    void* const pointer = const_cast<void*>(request.a);
    differs([](Request& r) { r.size = 0; });
    differs([](Request& r) { r.layout = HGEMM_ROW_MAJOR; });
    differs([](Request& r) { r.transb = HGEMM_TRANS; });
    differs([](Request& r) { r.type_d = HGEMM_F32; });
    differs([](Request& r) { r.m = 4095; });
    differs([](Request& r) { r.alpha = 2; });
    differs([](Request& r) { r.beta = -0.0f; });
    differs([&](Request& r) { r.alpha_device = static_cast<float*>(pointer); });
    differs([&](Request& r) { r.b = pointer; });
    differs([&](Request& r) { r.d = pointer; });
    differs([](Request& r) { r.ldb = 7176; });
    differs([](Request& r) { r.batch_count = 2; });
    differs([](Request& r) { r.stride_d = 1; });
    differs([&](Request& r) { r.d_array = static_cast<void* const*>(pointer); });
    differs([](Request& r) { r.bias_mode = HGEMM_BIAS_M; });
    differs([](Request& r) { r.activation = HGEMM_ACTIVATION_RELU; });
    differs([&](Request& r) { r.aux = pointer; });
    differs([](Request& r) { r.flags = 1; });
    // The last: another block, which may have no counters, at the address of one that was freed.
    const Workspace workspace{pointer, 256, nullptr, 0, 1}, longer{pointer, 512, nullptr, 0, 1},
        later{pointer, 256, nullptr, 0, 2};
    keep(*cache, request, workspace, 2);
    EXPECT_EQ(row_of(*cache, request), 1);
    EXPECT_EQ(row_of(*cache, request, workspace), 2);
    EXPECT_EQ(row_of(*cache, request, longer), -1);
    EXPECT_EQ(row_of(*cache, request, later), -1);
}

TEST(PlanCache, FindsNothingThatWasNotKept)
{
    const auto cache = std::make_unique<PlanCache>();
    const Request request = product(1);
    cache->entry_for(request, none);
    EXPECT_EQ(row_of(*cache, request), -1);
    keep(*cache, request, none, 1);
    keep(*cache, request, none, 2);
    EXPECT_EQ(row_of(*cache, request), 2);
    cache->entry_for(request, none);
    EXPECT_EQ(row_of(*cache, request), -1);
    keep(*cache, request, none, 3);
    cache->clear();
    EXPECT_EQ(row_of(*cache, request), -1);
}

TEST(PlanCache, KnowsPlansByShape)
{
    const auto cache = std::make_unique<PlanCache>();
    Problem problem{};
    problem.n = problem.k = problem.batch = 64;
    for (int i = 0; i < 200; ++i) {
        problem.m = i;
        Plan plan{};
        plan.kernel = i;
        cache->keep_plan(problem, none, plan);
    }
    for (int i = 0; i < 200; ++i) {
        problem.m = i;
        const Plan* plan = cache->find_plan(problem, none);
        ASSERT_TRUE(plan);
        EXPECT_EQ(plan->kernel, i);
    }
    problem.a.ptr = reinterpret_cast<const void*>(8);
    EXPECT_FALSE(cache->find_plan(problem, none));
}

// Calls that take turns, as a layer with and one without a bias do, need not be planned each time.
TEST(PlanCache, HoldsPlansThatDifferInOneMember)
{
    Problem problem{};
    problem.m = problem.n = problem.k = problem.batch = 64;
    void* const pointer = &problem;
    const auto lives_beside = [&](auto change) {
        const auto cache = std::make_unique<PlanCache>();
        Problem other = problem;
        change(other);
        Plan plan{};
        plan.kernel = 1;
        cache->keep_plan(problem, none, plan);
        plan.kernel = 2;
        cache->keep_plan(other, none, plan);
        const Plan *first = cache->find_plan(problem, none), *second = cache->find_plan(other, none);
        return first && second && first->kernel == 1 && second->kernel == 2;
    };
    EXPECT_TRUE(lives_beside([](Problem& p) { p.type_ab = Type::BF16; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.d.type = Type::F32; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.a.k_stride = 64; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.b.batch_stride = 64; }));
    EXPECT_TRUE(lives_beside([&](Problem& p) { p.a.array = &p.a.ptr; }));
    EXPECT_TRUE(lives_beside([&](Problem& p) { p.c.ptr = pointer; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.c.ld = 64; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.c.type = Type::F32; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.d.batch_stride = 64; }));
    EXPECT_TRUE(lives_beside([&](Problem& p) { p.aux.ptr = pointer; }));
    EXPECT_TRUE(lives_beside([&](Problem& p) { p.bias.ptr = pointer; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.bias.along = BiasAlong::Columns; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.bias.type = Type::BF16; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.bias.batch_stride = 64; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.activation = Activation::Relu; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.alpha_device = &p.alpha; }));
    EXPECT_TRUE(lives_beside([](Problem& p) { p.beta_device = &p.beta; }));
}

}  // namespace
}  // namespace hg
