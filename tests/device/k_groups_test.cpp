// Groups that divide K, whose sizes lie in device memory.
#include "../conformance.hpp"
#include "../k_groups.hpp"
#include "gpu.hpp"
#include "src/tools/support/kernel_names.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace hg::test {
namespace {

KGroupsCase k_case()
{
    KGroupsCase g;
    g.counts = {130, 0, 64, 5, 200};
    g.m = 136;
    g.n = 72;
    g.beta = -1;
    return g;
}

// Those of sm80 that have entry points for them, and all of sm90 that are for groups.
TEST(DeviceKGroups, each_kernel_forced)
{
    NEEDS_BACKEND("sm80");
    std::vector<std::string> names = grouped_kernel_names();
    for (const std::string& name : kernel_names())
        if (name.rfind("sm80_", 0) == 0)
            names.push_back(name);
    int kernels = 0;
    for (const std::string& name : names) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        int served = 0;
        for (const KGroupsCase& g : k_groups_cases()) {
            KGroupsTrial trial(library.memory(), g);
            const hgemm_status_t status = trial.run(library);
            if (status == HGEMM_STATUS_NOT_SUPPORTED)
                continue;
            EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << name << ": " << hgemm_last_error();
            trial.expect_right();
            ++served;
        }
        if (served > 0)
            std::printf("%-28s cases %d\n", name.c_str(), served);
        kernels += served > 0;
    }
    EXPECT_EQ(kernels, Cuda::get()->cc() == 90 ? 6 : 3);
}

class DeviceKGroupsOf : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override { NEEDS_BACKEND(GetParam()); }
};

// A graph reads the sizes that are there when it is launched.
TEST_P(DeviceKGroupsOf, graph_with_other_sizes)
{
    const auto library = make(GetParam());
    const Stream stream;
    KGroupsTrial trial(library->memory(), k_case());
    ASSERT_EQ(hgemm_set_stream(library->handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    CUgraphExec_st* const graph = Cuda::get()->capture(
        stream, [&] { EXPECT_EQ(trial.start(*library), HGEMM_STATUS_SUCCESS) << hgemm_last_error(); });
    for (const std::vector<int64_t>& counts : std::vector<std::vector<int64_t>>{
             {130, 0, 64, 5, 200}, {0, 0, 199, 200, 0}, {100, 100, 99, 64, 36}, {0, 0, 0, 0, 0}}) {
        trial.set_counts(counts);
        Cuda::get()->launch(graph, stream);
        Cuda::get()->wait(stream);
        trial.expect_right();
    }
    Cuda::get()->destroy(graph);
}

// Sizes that no group can have are cut to those that it can.
TEST_P(DeviceKGroupsOf, sizes_out_of_range)
{
    const auto library = make(GetParam());
    constexpr int64_t huge = int64_t{1} << 40;
    KGroupsTrial trial(library->memory(), k_case());
    trial.set_counts({130, 0, 269, 0, 0});
    trial.set_sizes({-huge, 130, 130, huge, huge, -huge});
    EXPECT_EQ(trial.run(*library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    trial.expect_right();
}

// On fewer SMs, in batch-invariant mode, and again with other sizes. Tree mode has none.
void expect_no_tree(Library& library)
{
    KGroupsTrial trial(library.memory(), k_case());
    ASSERT_EQ(hgemm_set_mode(library.handle(), HGEMM_MODE_TREE), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(trial.run(library), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("tree mode does not serve groups"), std::string::npos)
        << hgemm_last_error();
}

TEST_P(DeviceKGroupsOf, settings)
{
    for (const int sm_count : {0, 1, 3}) {
        const auto library = make(GetParam());
        EXPECT_EQ(hgemm_set_sm_count(library->handle(), sm_count), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(library->set_batch_invariant(sm_count == 3));
        KGroupsTrial trial(library->memory(), k_case());
        for (int call = 0; call < 2; ++call) {
            EXPECT_EQ(trial.run(*library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
            trial.expect_right();
            trial.set_counts({64, 130, 0, 200, 5});
        }
        expect_no_tree(*library);
    }
    Library forced(Cuda::get(), GetParam(),
                   std::string(GetParam()) == "sm90" ? "sm90_grouped_128x128_1x2" : "");
    expect_no_tree(forced);
}

INSTANTIATE_TEST_SUITE_P(, DeviceKGroupsOf, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
