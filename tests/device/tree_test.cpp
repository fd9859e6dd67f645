// Tree mode by one kernel, and by branches: right results, with the bits of products of the leaves and
// their sum.
#include "../conformance.hpp"
#include "../handle_scopes.hpp"
#include "../library_rules.hpp"
#include "gpu.hpp"
#include "src/plan/tree.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hg::test {
namespace {

// Majors, layout, types and what becomes of the sum, by the bits of `form`.
GemmCase tree_case(unsigned form, int64_t m, int64_t n, int64_t k)
{
    GemmCase g;
    g.layout = form & 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = form & 2 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.transb = form & 4 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.type_ab = g.type_c = g.type_d = halves[form / 2 % 2];
    if (form & 8)
        g.type_c = g.type_d = HGEMM_F32;
    g.m = m;
    g.n = n;
    g.k = k;
    g.aligned = true;
    g.device_scalars = form % 3 == 1;
    g.alpha = form % 3 == 0 ? 1.0f : 0.75f;
    g.beta = form % 5 < 2 ? -0.5f : 0.0f;
    g.bias = form % 4 == 3 ? HGEMM_BIAS_N : form % 4 == 2 ? HGEMM_BIAS_M : HGEMM_BIAS_NONE;
    g.activation = form % 7 == 6 ? HGEMM_ACTIVATION_RELU : HGEMM_ACTIVATION_NONE;
    g.batch_count = form % 6 == 5 ? 3 : 1;
    g.batch = g.batch_count > 1 ? Batch::Strided : Batch::Single;
    g.data = Data::Wide;
    g.seed = form + 1;
    return g;
}

std::vector<GemmCase> tree_cases()
{
    struct Shape {
        int64_t m, n, k;
    };
    // 2, 4, 8 and 16 leaves, of 512, 640 or 896; more tiles than eight SMs have at a time.
    const std::vector<Shape> shapes =
        thinning() > 1
            ? std::vector<Shape>{{8, 8, 1024},
                                 {136, 128, 2048},
                                 {72, 40, 5120},
                                 {1160, 128, 1280},
                                 {129, 136, 8192}}
            : std::vector<Shape>{{8, 8, 1024},     {136, 128, 2048},  {256, 264, 4096}, {64, 1000, 5120},
                                 {129, 136, 8192}, {1160, 640, 1280}, {72, 40, 14336},  {328, 512, 2560}};
    std::vector<GemmCase> cases;
    unsigned form = 0;
    for (const Shape& shape : shapes)
        for (int i = 0; i<(thinning() > 1 ? 2 : 16); ++i, form += thinning()> 1 ? 5 : 1)
            cases.push_back(tree_case(form, shape.m, shape.n, shape.k));
    return cases;
}

// One small D and a K of many leaves.
std::vector<GemmCase> branch_cases()
{
    constexpr int64_t depths[] = {2048, 5120, 8192, 14336, 16384};
    const int count = thinning() > 1 ? 24 : 64;
    std::vector<GemmCase> cases;
    for (int i = 0; i < count; ++i) {
        Random random(static_cast<uint64_t>(i));
        const int64_t most = thinning() > 1 ? 72 : 600;
        GemmCase g = tree_case(static_cast<unsigned>(i), 1 + random.below(most), 1 + random.below(most),
                               depths[random.below(5)]);
        g.batch_count = 1;
        g.batch = Batch::Single;
        g.in_place = i % 3 == 0;
        cases.push_back(g);
    }
    return cases;
}

// The elements of all problems' D, or why there are none.
std::vector<double> results_of(Library& library, const GemmCase& g, std::string& explained)
{
    Trial trial(g, library.memory());
    trial.upload();
    const InMode in_mode(library, HGEMM_MODE_TREE);
    explained = library.explain(trial.args());
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << g.print() << ": " << library.story();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << g.print() << ": " << explained;
    std::vector<double> results;
    for (int64_t z = 0; z < g.batch_count; ++z)
        for (int64_t i = 0; i < g.m; ++i)
            for (int64_t j = 0; j < g.n; ++j)
                results.push_back(trial.result(z, i, j));
    return results;
}

bool is_tree_kernel(Library& library, const GemmCase& g)
{
    const Trial trial(g, library.memory());
    const InMode in_mode(library, HGEMM_MODE_TREE);
    return library.explain(trial.args()).find("kernel=sm90_tree") != std::string::npos;
}

// Every kernel, and every number of slices.
std::vector<std::string> forced_kernels()
{
    std::vector<std::string> kernels{"sm90_tree_128x128_2x1"};
    size_t number = 0;
    const std::string splits[] = {"2", "8", "4", "1", "2"};
    for (const std::string tile : {"128x64", "64x64", "64x32_occ2", "64x16_occ2", "64x8_occ2"}) {
        const std::string one = splits[number++];
        for (const std::string split : {"1", "2", "4", "8"})
            if (thinning() <= 1 || split == one)
                kernels.push_back("sm90_tree_splitk_" + tile + "/split=" + split);
    }
    return kernels;
}

}  // namespace

TEST(DeviceKernels, tree)
{
    NEEDS_BACKEND("sm90");
    Library parts(Cuda::get(), "", "sm90_pingpong_128x128");
    ASSERT_TRUE(parts.created()) << parts.story();
    std::vector<std::vector<double>> expected;
    for (const GemmCase& g : tree_cases()) {
        std::string explained;
        expected.push_back(results_of(parts, g, explained));
        EXPECT_NE(explained.find("added up by"), std::string::npos) << explained;
    }
    for (const std::string& forced : forced_kernels()) {
        Library kernel(Cuda::get(), "", forced);
        ASSERT_TRUE(kernel.created()) << kernel.story();
        size_t number = 0;
        int served = 0;
        for (const GemmCase& g : tree_cases()) {
            const std::vector<double>& wanted = expected[number++];
            if (!is_tree_kernel(kernel, g))
                continue;  // TMA cannot store D, or load C; a slice would have too many leaves
            std::string explained;
            EXPECT_EQ(results_of(kernel, g, explained), wanted) << g.print() << ": " << explained;
            ++served;
        }
        EXPECT_GE(served, 4) << forced;
    }
}

// Any number of branches; what finishes D reads alpha, C and the bias after all sums.
TEST(DeviceKernels, tree_branches)
{
    NEEDS_BACKEND("sm90");
    for (const GemmCase& g : branch_cases()) {
        const int64_t leaves = count_leaves(g.k);
        std::vector<double> wanted;
        for (int64_t branches = leaves; branches >= 1; branches /= 2) {
            const std::string text = std::to_string(branches);
            Library library(Cuda::get(), "", "/branches=" + text);
            ASSERT_TRUE(library.created()) << library.story();
            std::string explained;
            const std::vector<double> results = results_of(library, g, explained);
            if (branches == leaves)
                wanted = results;
            EXPECT_EQ(results, wanted) << g.print() << ": " << explained;
            EXPECT_EQ(explained.find("added up by") != std::string::npos, branches > 1) << explained;
            EXPECT_EQ(explained.find("kernel=sm90_tree") != std::string::npos, branches < leaves)
                << explained;
            EXPECT_EQ(explained.find(" in " + text + " branches") != std::string::npos,
                      1 < branches && branches < leaves)
                << explained;
        }
    }
}

// A kernel that has no registers for a whole tree has them for branches; and branches that find no room.
TEST(DeviceKernels, tree_branches_of_forced_kernels)
{
    NEEDS_BACKEND("sm90");
    GemmCase g = tree_case(10, 24, 40, 16384);
    std::string explained;
    Library leaves(Cuda::get(), "", "/branches=32");
    const std::vector<double> wanted = results_of(leaves, g, explained);
    Library forced(Cuda::get(), "", "sm90_tree_splitk_64x32_occ2/split=1");
    EXPECT_EQ(results_of(forced, g, explained), wanted) << explained;
    EXPECT_NE(explained.find(" branches"), std::string::npos) << explained;
    Library branches(Cuda::get(), "", "/branches=8");
    const size_t sums = 8 * 24 * 40 * sizeof(float);
    for (const size_t bytes : {2 * sums, sums}) {
        const WithWorkspace workspace(branches, bytes);
        if (bytes > sums)
            EXPECT_EQ(results_of(branches, g, explained), wanted) << explained;
        else {
            const InMode in_mode(branches, HGEMM_MODE_TREE);
            expect_refused(branches, g, HGEMM_STATUS_NOT_SUPPORTED, "with /branches=8");
        }
    }
    Library free(Cuda::get());
    for (const size_t bytes : {size_t{1} << 20, sums, size_t{256}}) {
        const WithWorkspace workspace(free, bytes);
        EXPECT_EQ(results_of(free, g, explained), wanted) << bytes << ": " << explained;
    }
}

}  // namespace hg::test
