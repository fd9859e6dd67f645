// Groups of rows whose sizes lie in device memory.
#include "../conformance.hpp"
#include "../grouped_rules.hpp"
#include "gpu.hpp"
#include "src/tools/support/environment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace hg::test {
namespace {

constexpr hgemm_grouping_t groupings[] = {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED};

// Tiles that a group fills, and such as it does not; aligned, and read with D.
GroupedCase case_of(hgemm_grouping_t grouping)
{
    GroupedCase g;
    g.grouping = grouping;
    g.rows = {130, 0, 64, 5, 200};
    g.n = 264;
    g.k = 136;
    g.beta = -1;
    return g;
}

// The same with gates and aux, as one kernel serves them.
GroupedCase gated_case_of(hgemm_grouping_t grouping)
{
    GroupedCase g = case_of(grouping);
    g.n = 272;
    g.beta = 0;
    g.activation = HGEMM_ACTIVATION_SILU;
    g.gate.block = 136;
    g.aux = true;
    return g;
}

// Those for groups alone, and those of sm80, some of which serve groups as well.
std::vector<std::string> kernels()
{
    std::vector<std::string> names = grouped_kernel_names();
    for (const std::string& name : kernel_names())
        if (name.rfind("sm80_", 0) == 0)
            names.push_back(name);
    return names;
}

TEST(DeviceGroups, each_kernel_forced)
{
    NEEDS_BACKEND("sm80");
    int of_sm80 = 0;
    for (const std::string& name : kernels()) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        SCOPED_TRACE(name);
        int supported = 0;
        for (const hgemm_grouping_t grouping : groupings) {
            std::vector<GroupedCase> cases = grouped_cases(grouping);
            for (const GroupedCase& biased : biased_cases(grouping))
                if (biased.gate.block == 0)
                    cases.push_back(biased);
            for (size_t i = 0; i < cases.size(); i += thinning())
                supported += check_grouped(library, cases[i]);
        }
        if (supported == 0 &&
            std::string(hgemm_last_error()).find("no entry point for groups") != std::string::npos)
            continue;
        EXPECT_GT(supported, 0) << hgemm_last_error();
        of_sm80 += name.rfind("sm80_", 0) == 0;
        std::printf("%-28s cases %d\n", name.c_str(), supported);
    }
    EXPECT_GE(of_sm80, 2);
}

// Those that gate what they multiply serve no call in parts, so that what is right is theirs.
TEST(DeviceGroups, each_gated_kernel_forced)
{
    NEEDS_BACKEND("sm90");
    Library plain(Cuda::get(), "sm90");
    for (const char* const name : {"sm90_gated_grouped_64x128", "sm90_gated_grouped_128x128_1x2",
                                   "sm90_gated_grouped_128x160_1x2"}) {
        Library library(Cuda::get(), "", name);
        ASSERT_TRUE(library.created()) << library.story();
        SCOPED_TRACE(name);
        for (const hgemm_grouping_t grouping : groupings) {
            int served = 0, n_major = 0;
            for (const GroupedCase& g : aux_cases(grouping)) {
                const bool is_served = check_grouped(library, g);
                served += is_served;
                n_major += is_served && g.transb == HGEMM_NO_TRANS;
            }
            EXPECT_GE(served, 5);
            // Half of a tile of 160 columns is no whole panel.
            EXPECT_EQ(n_major, std::string(name).find("x160") == std::string::npos ? 4 : 0);
            EXPECT_GE(check_bits_of_aux(library, plain, grouping), thinning() > 1 ? 1 : 3);
        }
    }
}

// These serve contiguous groups of weights that are contiguous along K, without aux.
TEST(DeviceGroups, each_gated_kernel_of_few_rows_forced)
{
    NEEDS_BACKEND("sm90");
    for (const char* const name :
         {"sm90_gated_grouped_splitk_64x16_occ2", "sm90_gated_grouped_splitk_64x32_occ2"}) {
        Library library(Cuda::get(), "", name);
        ASSERT_TRUE(library.created()) << library.story();
        SCOPED_TRACE(name);
        int served = 0;
        for (GroupedCase g : aux_cases(HGEMM_GROUPED_CONTIGUOUS)) {
            EXPECT_FALSE(check_grouped(library, g)) << g.describe();
            g.aux = false;
            const bool is_served = check_grouped(library, g);
            EXPECT_FALSE(is_served && g.transb == HGEMM_NO_TRANS);
            served += is_served;
        }
        EXPECT_GE(served, 5);
        GroupedCase masked = gated_case_of(HGEMM_GROUPED_MASKED);
        masked.aux = false;
        EXPECT_FALSE(check_grouped(library, masked));
        std::printf("%-28s cases %d\n", name, served);
    }
}

// The bits of a group do not depend on which kernel computes it, and so not on the rows of others.
void expect_equal_bits(const std::string& one_kernel, const std::string& other_kernel, const GroupedCase& g)
{
    Library one_library(Cuda::get(), "", one_kernel), other_library(Cuda::get(), "", other_kernel);
    ASSERT_TRUE(one_library.created() && other_library.created());
    GroupedTrial one(one_library.memory(), g), other(other_library.memory(), g);
    ASSERT_EQ(one.run(one_library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    ASSERT_EQ(other.run(other_library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    one.download();
    other.download();
    for (int64_t row = 0; row < std::accumulate(g.rows.begin(), g.rows.end(), int64_t{0}); ++row)
        EXPECT_EQ(
            std::memcmp(one.d().line(0, row), other.d().line(0, row), static_cast<size_t>(2 * g.width())),
            0)
            << one_kernel << ", row " << row;
}

TEST(DeviceGroups, bits_of_few_rows)
{
    NEEDS_BACKEND("sm90");
    GroupedCase g;
    g.rows = {3, 0, 16, 40, 1};
    g.n = 144, g.k = 328;
    g.exact = false;
    GroupedCase biased = g;
    biased.type_ab = biased.type_d = HGEMM_BF16;
    biased.transb = HGEMM_NO_TRANS;
    biased.bias = true;
    GroupedCase gated = g;
    gated.activation = HGEMM_ACTIVATION_SILU;
    gated.gate.block = 72;
    gated.bias = true;
    for (const std::string tile : {"splitk_64x16_occ2", "splitk_64x32_occ2"}) {
        expect_equal_bits("sm90_grouped_" + tile, "sm90_grouped_64x128", g);
        expect_equal_bits("sm90_grouped_" + tile, "sm90_grouped_128x128_1x2", biased);
        expect_equal_bits("sm90_gated_grouped_" + tile, "sm90_gated_grouped_64x128", gated);
    }
}

// Tiles that clusters are handed, one after the other, from a word that is 0 again behind each call: also
// where there are fewer tiles than clusters, or none.
TEST(DeviceGroups, each_kernel_handed_out)
{
    NEEDS_BACKEND("sm90");
    const std::string log = testing::TempDir() + "groups_handed_out." + std::to_string(getpid());
    const Variable level("HGEMM_LOG", "plan"), file("HGEMM_LOG_FILE", log.c_str());
    GroupedCase g = case_of(HGEMM_GROUPED_CONTIGUOUS);
    g.rows = {130, 0, 260};
    g.n = 400;
    g.k = 2048;
    int tested = 0;
    for (const std::string& name : grouped_kernel_names()) {
        std::remove(log.c_str());
        Library library(Cuda::get(), "", name);
        if (!library.created() || name.find("_1x2") == std::string::npos)
            continue;
        SCOPED_TRACE(name);
        g.beta = name.find("128x128") == std::string::npos ? 0 : -1;
        EXPECT_EQ(hgemm_set_sm_count(library.handle(), 4), HGEMM_STATUS_SUCCESS);
        GroupedTrial trial(library.memory(), g);
        for (const std::vector<int64_t>& rows :
             std::vector<std::vector<int64_t>>{{130, 0, 260}, {1, 0, 0}, {0, 0, 0}, {0, 390, 0}}) {
            trial.set_rows(rows);
            EXPECT_EQ(trial.run(library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
            trial.expect_right();
        }
        std::stringstream plans;
        plans << std::ifstream(log).rdbuf();
        EXPECT_NE(plans.str().find(" schedule=dynamic "), std::string::npos) << plans.str();
        ++tested;
    }
    EXPECT_GT(tested, 0);
    std::remove(log.c_str());
}

// From each backend on: those that have no kernel for groups leave them to sm80.
class DeviceGroupsOf : public testing::TestWithParam<const char*> {};

void check_graph_with_other_sizes(Library& library, const GroupedCase& g)
{
    SCOPED_TRACE(g.describe());
    const Stream stream;
    GroupedTrial trial(library.memory(), g);
    ASSERT_EQ(hgemm_set_stream(library.handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    CUgraphExec_st* graph = Cuda::get()->capture(
        stream, [&] { EXPECT_EQ(trial.start(library), HGEMM_STATUS_SUCCESS) << hgemm_last_error(); });
    for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{
             {130, 0, 64, 5, 200}, {0, 0, 199, 200, 0}, {100, 100, 99, 64, 36}, {0, 0, 0, 0, 0}}) {
        trial.set_rows(rows);
        Cuda::get()->launch(graph, stream);
        Cuda::get()->wait(stream);
        trial.expect_right();
    }
    Cuda::get()->destroy(graph);
}

// A graph reads the sizes that are there when it is launched.
TEST_P(DeviceGroupsOf, graph_with_other_sizes)
{
    NEEDS_BACKEND(GetParam());
    for (const hgemm_grouping_t grouping : groupings)
        for (const auto& make_case : {case_of, gated_case_of}) {
            const auto library = make(GetParam());
            check_graph_with_other_sizes(*library, make_case(grouping));
        }
}

// Sizes that no group can have are cut to those that it can, so that nothing else is written.
TEST_P(DeviceGroupsOf, sizes_out_of_range)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    constexpr int64_t huge = int64_t{1} << 40;
    for (const auto& make_case : {case_of, gated_case_of}) {
        GroupedTrial masked(library->memory(), make_case(HGEMM_GROUPED_MASKED));
        masked.set_rows({200, 0, 0, 5, 200});
        masked.set_sizes({huge, -huge, -1, 5, 201});
        EXPECT_EQ(masked.run(*library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        masked.expect_right();
        GroupedTrial contiguous(library->memory(), make_case(HGEMM_GROUPED_CONTIGUOUS));
        contiguous.set_rows({130, 0, 269, 0, 0});
        contiguous.set_sizes({-huge, 130, 130, huge, huge, -huge});
        EXPECT_EQ(contiguous.run(*library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        contiguous.expect_right();
    }
}

// On fewer SMs, in batch-invariant mode, and in a second call with other sizes.
TEST_P(DeviceGroupsOf, settings)
{
    NEEDS_BACKEND(GetParam());
    for (const hgemm_grouping_t grouping : groupings)
        for (const int sm_count : {0, 1, 3}) {
            const auto library = make(GetParam());
            EXPECT_EQ(hgemm_set_sm_count(library->handle(), sm_count), HGEMM_STATUS_SUCCESS);
            EXPECT_TRUE(library->set_batch_invariant(sm_count == 3));
            GroupedTrial trial(library->memory(), case_of(grouping));
            for (int call = 0; call < 2; ++call) {
                EXPECT_EQ(trial.run(*library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
                trial.expect_right();
                trial.set_rows({64, 130, 0, 200, 5});
            }
        }
}

TEST_P(DeviceGroupsOf, what_is_refused)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    const Block sizes(library->memory(), 6 * sizeof(int64_t)), d(library->memory(), 2 * 64 * 64);
    hgemm_grouped_args_t good;
    hgemm_grouped_args_init(&good, sizeof good);
    good.group_count = 5;
    good.m = good.n = good.k = good.lda = good.ldb = good.ldd = 64;
    good.a = good.b = good.d = d.get();
    good.offsets = sizes.get<const int64_t>();
    const auto expect_refused = [&](const hgemm_grouped_args_t& args, const char* name) {
        EXPECT_EQ(hgemm_grouped_ex(library->handle(), &args), HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::string(hgemm_last_error()).find(name), std::string::npos) << hgemm_last_error();
    };
    hgemm_grouped_args_t args = good;
    args.offsets = nullptr;
    expect_refused(args, "args->offsets");
    args.offsets = reinterpret_cast<const int64_t*>(sizes.get<const char>() + 4);
    expect_refused(args, "args->offsets");
    args = good, args.a = nullptr;
    expect_refused(args, "args->a");
    args = good, args.b = d.get<char>() + 1;
    expect_refused(args, "args->b");
    args = good, args.d = nullptr;
    expect_refused(args, "args->d");
    args = good, args.ldb = 63;
    expect_refused(args, "args->ldb");
    args = good, args.transb = static_cast<hgemm_op_t>(7);
    expect_refused(args, "args->transb");
    args = good, args.m = -1;
    expect_refused(args, "args->m");
    args = good, args.m = 0, args.a = args.b = args.d = nullptr;
    EXPECT_EQ(hgemm_grouped_ex(library->handle(), &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

INSTANTIATE_TEST_SUITE_P(, DeviceGroupsOf, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
