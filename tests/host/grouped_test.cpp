// What grouped calls refuse, and that they write nothing then.
#include "arch/host/backend.hpp"
#include "message.hpp"
#include "src/run/handle.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace hg::test {
namespace {

// As a newer version's caller has them.
struct NewerArgs {
    hgemm_args_t args;
    uint64_t added[8];
};
struct NewerGroupedArgs {
    hgemm_grouped_args_t args;
    uint64_t added;
};

hgemm_grouped_args_t host_grouping(const hgemm_args_t* problems, int64_t count)
{
    hgemm_grouped_args_t g;
    hgemm_grouped_args_init(&g, sizeof g);
    g.grouping = HGEMM_GROUPED_HOST;
    g.group_count = count;
    g.problems = problems;
    return g;
}

class Grouped : public testing::Test {
protected:
    static constexpr size_t length = 4096;  // of a matrix
    static constexpr uint16_t old = 0x1234;

    void SetUp() override { create(size_t{1} << 20); }
    void TearDown() override { hgemm_destroy(handle); }

    void create(size_t workspace)
    {
        hgemm_destroy(handle);
        ASSERT_EQ(hgemm_create_sized(&handle, HGEMM_DEVICE_HOST, workspace), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
    }

    // D is the problem's own.
    void set_problem(hgemm_args_t& args, size_t size, size_t index, int64_t n)
    {
        hgemm_args_init(&args, size);
        args.m = args.n = args.k = args.lda = args.ldb = args.ldd = n;
        args.a = a.data();
        args.b = b.data();
        args.d = &d[index * length];
    }
    std::vector<hgemm_args_t> problems(std::initializer_list<int64_t> sizes)
    {
        std::vector<hgemm_args_t> list(sizes.size());
        size_t index = 0;
        for (const int64_t n : sizes) {
            set_problem(list[index], sizeof(hgemm_args_t), index, n);
            ++index;
        }
        return list;
    }
    hgemm_status_t run(const hgemm_args_t* list, int64_t count)
    {
        const hgemm_grouped_args_t g = host_grouping(list, count);
        return hgemm_grouped_ex(handle, &g);
    }
    hgemm_status_t run(const std::vector<hgemm_args_t>& list) { return run(list.data(), std::ssize(list)); }

    // Two groups of 2 and 3 rows.
    hgemm_grouped_args_t groups(hgemm_grouping_t grouping)
    {
        hgemm_grouped_args_t g;
        hgemm_grouped_args_init(&g, sizeof g);
        g.grouping = grouping;
        g.group_count = 2;
        g.m = 5;
        g.n = g.k = g.lda = g.ldb = g.ldd = 8;
        g.a = a.data();
        g.b = b.data();
        g.d = d.data();
        g.stride_a = g.stride_b = g.stride_d = 64;
        if (grouping == HGEMM_GROUPED_MASKED)
            g.counts = counts;
        else
            g.offsets = offsets;
        return g;
    }
    template <typename Change>
    void refused(hgemm_grouping_t grouping, const std::string& text, Change change)
    {
        hgemm_grouped_args_t g = groups(grouping);
        change(g);
        expect_invalid(hgemm_grouped_ex(handle, &g), 2, text);
        EXPECT_TRUE(untouched()) << text;
    }
    bool untouched() const { return d == std::vector<uint16_t>(3 * length, old); }

    hgemm_handle_t handle = nullptr;
    int64_t offsets[3] = {0, 2, 5}, counts[2] = {2, 3};
    std::vector<uint16_t> a = std::vector<uint16_t>(length, 0x3c00),
                          b = std::vector<uint16_t>(length, 0x3c00),
                          d = std::vector<uint16_t>(3 * length, old);
};

TEST_F(Grouped, WrongMembersAreNamed)
{
    const auto wrong = [&](const std::string& text, auto change) {
        refused(HGEMM_GROUPED_CONTIGUOUS, text, change);
    };
    expect_invalid(hgemm_grouped_ex(handle, nullptr), 2, "(args) is NULL");
    wrong("args->size", [](auto& g) { g.size = 4; });
    wrong("(args->grouping) is 9", [](auto& g) { g.grouping = static_cast<hgemm_grouping_t>(9); });
    wrong("(args->group_count) is -1", [](auto& g) { g.group_count = -1; });
    wrong("(args->m) is -1", [](auto& g) { g.m = -1; });
    wrong("(args->n) is -1", [](auto& g) { g.n = -1; });
    wrong("(args->k) is -1", [](auto& g) { g.k = -1; });
    wrong("(args->transb) is 0", [](auto& g) { g.transb = static_cast<hgemm_op_t>(0); });
    wrong("(args->type_ab) is 3", [](auto& g) { g.type_ab = HGEMM_F32; });
    wrong("(args->type_d) is 0", [](auto& g) { g.type_d = static_cast<hgemm_type_t>(0); });
    wrong("(args->a) is NULL", [](auto& g) { g.a = nullptr; });
    wrong("(args->lda) is 7", [](auto& g) { g.lda = 7; });
    wrong("(args->b) is NULL", [](auto& g) { g.b = nullptr; });
    wrong("(args->ldb) is 7", [](auto& g) { g.ldb = 7; });
    wrong("(args->d) is NULL", [](auto& g) { g.d = nullptr; });
    wrong("(args->d) is NULL", [](auto& g) { g.d = nullptr, g.beta = 1; });
    wrong("(args->ldd) is 7", [](auto& g) { g.ldd = 7; });
    wrong("(args->ldd) is 7", [](auto& g) { g.ldd = 7, g.beta = 1; });
    wrong("(args->offsets) is NULL", [](auto& g) { g.offsets = nullptr; });
    wrong("(args->activation) is 1, must be 0 without args->gate.block",
          [](auto& g) { g.activation = HGEMM_ACTIVATION_RELU; });
    wrong("(args->activation) is 7", [](auto& g) {
        g.gate.block = 4;
        g.activation = static_cast<hgemm_activation_t>(7);
    });
    wrong("(args->beta) is 1, must be 0 with args->gate.block",
          [](auto& g) { g.gate.block = 4, g.beta = 1; });
    wrong("(args->gate.block) is 3, twice of it must divide", [](auto& g) { g.gate.block = 3; });
    wrong("(args->gate.block) is 0, so the other members", [](auto& g) { g.gate.limit = 4; });
    wrong("(args->gate.limit) is -1, must be finite", [](auto& g) { g.gate = {4, -1, 0, 0, 0}; });
    wrong("(args->gate.slope) is 1, must be 0 without", [](auto& g) { g.gate = {4, 0, 1, 0, 0}; });
    wrong("(args->ldd) is 3, must be at least n / 2 = 4", [](auto& g) { g.gate.block = 4, g.ldd = 3; });
    wrong("(args->bias_type) is 0, must be 1 (F16), 2 (BF16) or 3 (F32)", [&](auto& g) {
        g.bias = a.data();
        g.bias_type = static_cast<hgemm_type_t>(0);
    });
    wrong("(args->bias) is", [&](auto& g) {
        g.bias = reinterpret_cast<const char*>(a.data()) + 2;
        g.bias_type = HGEMM_F32;
    });
    wrong("(args->stride_bias) is 4611686018427387904, too large: 2 groups", [&](auto& g) {
        g.bias = a.data();
        g.stride_bias = int64_t{1} << 62;
    });
    wrong("overlaps", [&](auto& g) { g.bias = d.data(); });
    refused(HGEMM_GROUPED_K, "must be NULL for groups of k", [&](auto& g) {
        g.bias = a.data();
        g.transb = HGEMM_NO_TRANS;
    });
    refused(HGEMM_GROUPED_K, "(args->gate.block) is 4, must be 0 for groups of k", [](auto& g) {
        g.gate.block = 4;
        g.transb = HGEMM_NO_TRANS;
    });
    wrong("(args->problems) is NULL", [](auto& g) { g.grouping = HGEMM_GROUPED_HOST; });
    refused(HGEMM_GROUPED_MASKED, "(args->counts) is NULL", [](auto& g) { g.counts = nullptr; });
    offsets[1] = counts[1] = 6;
    wrong("(args->offsets) has", [](auto&) {});
    refused(HGEMM_GROUPED_MASKED, "(args->counts) has 6 for group 1", [](auto&) {});
    hgemm_grouped_args_t none = groups(HGEMM_GROUPED_CONTIGUOUS);
    none.group_count = 0;
    EXPECT_EQ(hgemm_grouped_ex(handle, &none), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

TEST_F(Grouped, SizesHaveOneForm)
{
    const int32_t narrow_ends[] = {2, 5}, falling_ends[] = {3, 2}, narrow_counts[] = {2, -1};
    const int64_t ends[] = {2, 6};
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->ends) is not NULL, must be NULL beside args->offsets",
            [&](auto& g) { g.ends = offsets + 1; });
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->offsets_i32) is not NULL, must be NULL beside args->ends_i32",
            [&](auto& g) {
                g.offsets = nullptr;
                g.offsets_i32 = g.ends_i32 = narrow_ends;
            });
    refused(HGEMM_GROUPED_MASKED, "(args->counts_i32) is not NULL, must be NULL beside args->counts",
            [&](auto& g) { g.counts_i32 = narrow_counts; });
    for (const auto member : {&hgemm_grouped_args_t::offsets, &hgemm_grouped_args_t::ends})
        refused(HGEMM_GROUPED_MASKED, "is not NULL, must be NULL for masked groups",
                [&](auto& g) { g.*member = offsets; });
    for (const auto member : {&hgemm_grouped_args_t::offsets_i32, &hgemm_grouped_args_t::ends_i32})
        refused(HGEMM_GROUPED_MASKED, "is not NULL, must be NULL for masked groups",
                [&](auto& g) { g.*member = narrow_ends; });
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->counts) is not NULL, must be NULL for contiguous groups",
            [&](auto& g) { g.counts = counts; });
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->counts_i32) is not NULL, must be NULL for contiguous groups",
            [&](auto& g) { g.counts_i32 = narrow_counts; });
    const auto instead = [](auto member, const auto* sizes) {
        return [member, sizes](hgemm_grouped_args_t& g) {
            g.offsets = g.counts = nullptr;
            g.*member = sizes;
        };
    };
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->ends) has 2 and 6 for group 1, must not decrease",
            instead(&hgemm_grouped_args_t::ends, ends));
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->ends_i32) has 3 and 2 for group 1, must not decrease",
            instead(&hgemm_grouped_args_t::ends_i32, falling_ends));
    refused(HGEMM_GROUPED_MASKED, "(args->counts_i32) has -1 for group 1, must be from 0 to m = 5",
            instead(&hgemm_grouped_args_t::counts_i32, narrow_counts));
    hgemm_grouped_args_t g = groups(HGEMM_GROUPED_CONTIGUOUS);
    instead(&hgemm_grouped_args_t::ends_i32, narrow_ends)(g);
    EXPECT_EQ(hgemm_grouped_ex(handle, &g), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

TEST_F(Grouped, RowsThatNoMemoryHasAreRefused)
{
    constexpr int64_t far_row = int64_t{1} << 60;
    offsets[0] = offsets[1] = far_row;
    offsets[2] = far_row + 1;
    refused(HGEMM_GROUPED_CONTIGUOUS, "(args->lda) is 8, too large: ", [](auto& g) { g.m = far_row + 1; });
    for (const hgemm_grouping_t grouping : {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED})
        refused(grouping, "(args->ldd) is 1099511627776, too large: ", [this](auto& g) {
            g.ldd = int64_t{1} << 40;
            g.m = int64_t{1} << 21;
            offsets[0] = offsets[1] = 0;
            offsets[2] = 1;
        });
}

TEST_F(Grouped, StridesThatNoMemoryHasAreRefused)
{
    const std::string value = std::to_string(far) + ", too large: 2 groups";
    for (const hgemm_grouping_t grouping : {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED})
        refused(grouping, "(args->stride_b) is " + value, [](auto& g) { g.stride_b = far; });
    refused(HGEMM_GROUPED_MASKED, "(args->stride_a) is " + value, [](auto& g) { g.stride_a = far; });
    refused(HGEMM_GROUPED_MASKED, "(args->stride_d) is " + value, [](auto& g) { g.stride_d = far; });
    refused(HGEMM_GROUPED_MASKED, "(args->stride_d) is -", [](auto& g) { g.stride_d = -far; });
    // Contiguous groups have no use for these.
    hgemm_grouped_args_t g = groups(HGEMM_GROUPED_CONTIGUOUS);
    g.stride_a = g.stride_d = far;
    EXPECT_EQ(hgemm_grouped_ex(handle, &g), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

TEST_F(Grouped, MaskedGroupsHaveOutputsOfTheirOwn)
{
    refused(HGEMM_GROUPED_MASKED, "(args->stride_d) is 0, must separate the outputs of 2 groups",
            [](auto& g) { g.stride_d = 0; });
    const auto served = [&](hgemm_grouping_t grouping, auto change) {
        hgemm_grouped_args_t g = groups(grouping);
        g.stride_d = 0;
        change(g);
        EXPECT_EQ(hgemm_grouped_ex(handle, &g), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    };
    served(HGEMM_GROUPED_CONTIGUOUS, [](auto&) {});
    served(HGEMM_GROUPED_MASKED, [](auto& g) { g.group_count = 1; });
    served(HGEMM_GROUPED_MASKED, [](auto& g) { g.n = 0; });
    counts[0] = counts[1] = 0;
    served(HGEMM_GROUPED_MASKED, [](auto& g) { g.m = 0; });
}

TEST_F(Grouped, MembersOfANewerVersionMustBeZero)
{
    std::vector<hgemm_args_t> list = problems({8});
    NewerGroupedArgs newer{host_grouping(list.data(), 1), 1};
    newer.args.size = sizeof newer;
    expect_invalid(hgemm_grouped_ex(handle, &newer.args), 2,
                   "(args->size) is " + std::to_string(sizeof newer) + ", members beyond ");
    EXPECT_TRUE(untouched());
    newer.added = 0;
    EXPECT_EQ(hgemm_grouped_ex(handle, &newer.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

TEST_F(Grouped, ProblemsOfANewerVersionAreServed)
{
    std::vector<NewerArgs> list(3);
    for (size_t i = 0; i < list.size(); ++i)
        set_problem(list[i].args, sizeof(NewerArgs), i, 8);
    list[2].added[7] = 1;
    expect_invalid(run(&list[0].args, 3), 2, "(args->problems[2].size) is ");
    EXPECT_TRUE(untouched());
    list[2].added[7] = 0;
    ASSERT_EQ(run(&list[0].args, 3), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (size_t i = 0; i < list.size(); ++i)
        EXPECT_EQ(d[i * length + 63], 0x4800) << "8 of problem " << i;
}

TEST_F(Grouped, ProblemsHaveOneSize)
{
    std::vector<hgemm_args_t> list = problems({8, 8, 8});
    const std::string size = std::to_string(sizeof(hgemm_args_t));
    list[2].size = 2 * sizeof(hgemm_args_t);
    expect_invalid(run(list), 2,
                   "(args->problems[2].size) is " + std::to_string(list[2].size) + ", must be " + size +
                       " as in args->problems[0]");
    list[0].size = 40;
    expect_invalid(run(list), 2, "(args->problems[0].size) is 40, must be a multiple of 8 from 280");
    EXPECT_TRUE(untouched());
}

TEST_F(Grouped, TheWrongProblemIsNamed)
{
    std::vector<hgemm_args_t> list = problems({8, 8, 8});
    list[2].lda = 3;
    expect_invalid(run(list), 2,
                   "hgemm_grouped_ex: argument 2 (args->problems[2].lda) is 3, must be at least m = 8");
    list[1].d = nullptr;
    expect_invalid(run(list), 2, "argument 2 (args->problems[1].d) is NULL");
    EXPECT_TRUE(untouched());
    // It is forgotten with the call.
    expect_invalid(hgemm_gemm_ex(handle, &list[2]), 2, "hgemm_gemm_ex: argument 2 (args->lda) is 3");
    expect_invalid(hgemm_set_sm_count(handle, -1), 2, "hgemm_set_sm_count: argument 2 (count) is -1");
}

TEST_F(Grouped, NothingRunsWhereALaterProblemNeedsMoreWorkspace)
{
    std::vector<hgemm_args_t> list = problems({8, 64});
    size_t small = 0, large = 0;
    ASSERT_EQ(hgemm_workspace_size(handle, &list[0], &small), HGEMM_STATUS_SUCCESS);
    ASSERT_EQ(hgemm_workspace_size(handle, &list[1], &large), HGEMM_STATUS_SUCCESS);
    ASSERT_LT(small, large);
    create(small);
    ASSERT_EQ(hgemm_gemm_ex(handle, &list[1]), HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    const std::string text = hgemm_last_error();
    EXPECT_EQ(run(list), HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    EXPECT_EQ(hgemm_last_error(),
              "hgemm_grouped_ex: args->problems[1]" + text.substr(text.find(": needs ")));
    EXPECT_TRUE(untouched());
    // What is empty needs none.
    list[1].m = 0;
    EXPECT_EQ(run(list), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(untouched());
}

// The host's backend, but that it serves no more than 8 columns.
bool choose_narrow(const Problem& problem, const Device& device, const Options& options, Plan& plan);
const Backend narrow_backend = [] {
    Backend backend = host_backend;
    backend.choose = choose_narrow;
    return backend;
}();

bool choose_narrow(const Problem& problem, const Device& device, const Options& options, Plan& plan)
{
    plan.refusal = "too wide";
    const bool served = problem.n <= 8 && host_backend.choose(problem, device, options, plan);
    plan.backend = &narrow_backend;
    return served;
}

TEST_F(Grouped, NothingRunsWhereNoKernelServesALaterProblem)
{
    find_handle(handle)->backends[0] = &narrow_backend;
    std::vector<hgemm_args_t> list = problems({8, 8, 64});
    EXPECT_EQ(run(list), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_STREQ(hgemm_last_error(), "hgemm_grouped_ex: args->problems[2]: too wide");
    EXPECT_TRUE(untouched());
    list.pop_back();
    EXPECT_EQ(run(list), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(untouched());
}

}  // namespace
}  // namespace hg::test
