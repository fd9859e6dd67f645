// Tree mode by one kernel: right results, with the bits of products of the leaves and their sum.
#include "../conformance.hpp"
#include "../handle_scopes.hpp"
#include "gpu.hpp"

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

}  // namespace hg::test
