// Gated results by kernels that gate their own tiles.
#include "../conformance.hpp"
#include "../gate_rules.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hg::test {
namespace {

// As the kernels need them: A and B are contiguous along K, and D is of their type. Both layouts, all
// activations that they have, and all numbers of gates.
GemmCase case_of(unsigned form, int64_t lines, int64_t length, int64_t k, int64_t block)
{
    GemmCase g = gate_case(form, lines, length, k, block);
    g.transa = g.d_by_rows() ? HGEMM_NO_TRANS : HGEMM_TRANS;
    g.transb = g.d_by_rows() ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.type_ab = g.type_c = g.type_d = halves[form / 4 % 2];
    if (g.activation == HGEMM_ACTIVATION_GELU_ERF)
        g.activation = HGEMM_ACTIVATION_GELU_TANH;
    g.aligned = true;
    return g;
}

// An element for each column of the product, before it is cut into gates and up elements.
void add_bias(GemmCase& g, unsigned form)
{
    constexpr hgemm_type_t types[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};
    g.bias = g.d_by_rows() ? HGEMM_BIAS_N : HGEMM_BIAS_M;
    g.bias_type = types[form / 2 % 3];
}

struct GatedShape {
    int64_t lines, length, k, block;
};

// The whole length is one block, and also shorter than a tile; blocks are several in a tile, or longer than
// one.
std::vector<GemmCase> cases()
{
    const std::vector<GatedShape> shapes{{1, 8, 56, 0},       {130, 72, 136, 0},   {328, 136, 200, 0},
                                         {257, 264, 64, 0},   {136, 136, 64, 1},   {70, 264, 128, 1},
                                         {136, 136, 120, 8},  {300, 264, 72, 8},   {96, 352, 72, 88},
                                         {150, 256, 72, 128}, {200, 320, 136, 64}, {64, 512, 64, 256}};
    std::vector<GemmCase> cases;
    for (const GatedShape& shape : shapes)
        for (unsigned i = 0; i < (thinning() > 1 ? 1u : 5u); ++i) {
            const auto form = static_cast<unsigned>(cases.size());
            GemmCase g = case_of(form, shape.lines, shape.length, shape.k, shape.block);
            if (form % 3 != 1)
                add_bias(g, form);
            if (form % 2 == 1) {
                g.batch = Batch::Strided;
                g.batch_count = 3;
                g.b.step = form % 3 == 0 ? 0 : 1;
                g.bias_step = form % 4 == 1 ? 0 : 1;
                g.alpha = -0.5f;
            }
            cases.push_back(g);
        }
    return cases;
}

bool is_served(Library& library, const GemmCase& g)
{
    const Trial trial(g, library.memory());
    const std::string how = library.explain(trial.args());
    return how.find("kernel=") != std::string::npos && how.find("gates in") == std::string::npos;
}

void check_kernel(const std::string& kernel, const std::vector<GemmCase>& list = cases())
{
    Library library(Cuda::get(), "", kernel);
    ASSERT_TRUE(library.created()) << library.story();
    Suite suite(library);
    const bool streams = kernel.ends_with("/stream_k=1");
    int served = 0;
    for (const GemmCase& g : list)
        if (is_served(library, g)) {
            suite.check(g);
            if (streams)
                suite.check(g);  // words in memory are 0 again
            ++served;
        }
    EXPECT_GE(served, streams ? 1 : 2) << kernel;
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << kernel << ": " << failure;
}

constexpr const char* persistent_kernels[] = {
    "128x256_2x1/stream_k=0", "128x256_2x1/stream_k=1", "128x224", "128x176_2x1",
    "128x128_2x1/stream_k=0", "128x128_2x1/stream_k=1"};

std::vector<GemmCase> cases_with_aux()
{
    std::vector<GemmCase> list = cases();
    for (size_t i = 0; i < list.size(); ++i) {
        list[i].aux = true;
        list[i].aux_place.gap = i % 2 == 0 ? 0 : 8;
    }
    if (thinning() > 1)  // every other one, of each shape and number of problems in turn
        for (size_t i = 1; i < list.size(); ++i)
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return list;
}

void take_n_major(GemmCase& g) { (g.d_by_rows() ? g.transb : g.transa) = HGEMM_NO_TRANS; }

// Of kernels whose tiles have whole panels of 64 gates.
std::vector<GemmCase> n_major(std::vector<GemmCase> list)
{
    for (GemmCase& g : list)
        take_n_major(g);
    return list;
}

// B is also contiguous along N, and D of other types and of lengths that are no multiple of eight.
std::vector<GemmCase> cases_of_sm80()
{
    std::vector<GemmCase> list = cases();
    for (unsigned form = 0; form < 4; ++form)
        for (const GatedShape& shape : {GatedShape{77, 100, 72, 0}, {90, 45, 64, 1}, {33, 5, 128, 0}})
            list.push_back(case_of(form, shape.lines, shape.length, shape.k, shape.block));
    for (size_t i = 0; i < list.size(); ++i) {
        GemmCase& g = list[i];
        if (i % 2 == 0 && g.gate.block != 1)
            take_n_major(g);
        if (i % 3 == 0)
            g.type_d = g.type_ab == HGEMM_F16 ? HGEMM_F32 : HGEMM_F16;
    }
    return list;
}

std::vector<double> results_of(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << g.print();
    return trial.results(g.rows_of_d());
}

// aux is that of the product, and D has the bits that the same kernel computes without aux.
void check_aux_of_kernel(const std::string& kernel, const std::vector<GemmCase>& list = cases_with_aux())
{
    Library library(Cuda::get(), "", kernel);
    ASSERT_TRUE(library.created()) << library.story();
    int served = 0;
    for (const GemmCase& g : list) {
        GemmCase without = g;
        without.aux = false;
        EXPECT_EQ(is_served(library, g), is_served(library, without)) << kernel << ": " << g.print();
        if (!is_served(library, g))
            continue;
        EXPECT_TRUE(results_of(library, g) == results_of(library, without)) << kernel << ": " << g.print();
        ++served;
    }
    EXPECT_GE(served, kernel.ends_with("/stream_k=1") ? 1 : 2) << kernel;
}

}  // namespace

// Of an odd number of columns of D pairs would reach past the last one.
static void check_aux_of_few_columns(const std::string& kernel)
{
    Library library(Cuda::get(), "", kernel);
    ASSERT_TRUE(library.created()) << library.story();
    for (const GatedShape& shape :
         {GatedShape{33, 5, 128, 0}, {90, 45, 64, 1}, {77, 100, 72, 0}, {50, 46, 64, 1}}) {
        GemmCase g = case_of(1, shape.lines, shape.length, shape.k, shape.block);
        g.aux = true;
        g.aux_place.gap = 16 - 2 * shape.length % 8;
        EXPECT_EQ(is_served(library, g), shape.length % 2 == 0) << kernel << ": " << g.print();
        results_of(library, g);
    }
}

TEST(DeviceKernels, gated_by_sm80)
{
    NEEDS_BACKEND("sm80");
    for (const char* kernel : {"sm80_128x128x64_s3", "sm80_64x64x64_s4"}) {
        check_kernel(kernel, cases_of_sm80());
        check_aux_of_kernel(kernel);
        check_aux_of_few_columns(kernel);
    }
    Library other(Cuda::get(), "", "sm80_64x128x64_s4");
    ASSERT_TRUE(other.created()) << other.story();
    for (const GemmCase& g : cases())
        EXPECT_FALSE(is_served(other, g)) << g.print();
}

TEST(DeviceKernels, gated_aux)
{
    NEEDS_BACKEND("sm90");
    for (const char* kernel : persistent_kernels)
        check_aux_of_kernel(std::string("sm90_gated_") + kernel);
    // Kernels that share K out store no aux.
    for (const char* kernel : {"sm90_gated_splitk_128x96", "sm90_gated_splitk_64x16_occ2"}) {
        Library library(Cuda::get(), "", kernel);
        ASSERT_TRUE(library.created()) << library.story();
        for (const GemmCase& g : cases_with_aux())
            EXPECT_FALSE(is_served(library, g)) << kernel << ": " << g.print();
    }
}

// The plan of a product without aux is none of the same product with it. What is not aligned runs in parts.
TEST(DeviceKernels, gated_aux_planned)
{
    NEEDS_BACKEND("sm90");
    const auto library = make("sm90");
    int by_kernel = 0;
    for (const GemmCase& g : cases_with_aux()) {
        GemmCase without = g, apart = g;
        without.aux = false;
        apart.aligned = false;  // which it is nevertheless, but for aux
        apart.aux_place.shift = 1;
        results_of(*library, without);
        results_of(*library, g);
        results_of(*library, apart);
        by_kernel += is_served(*library, g);
        EXPECT_FALSE(is_served(*library, apart)) << g.print();
    }
    EXPECT_GT(by_kernel, 0);
}

TEST(DeviceKernels, gated_n_major)
{
    NEEDS_BACKEND("sm90");
    for (const std::string kernel : {"128x256_2x1/stream_k=0", "128x256_2x1/stream_k=1",
                                     "128x128_2x1/stream_k=0", "128x128_2x1/stream_k=1"}) {
        check_kernel("sm90_gated_" + kernel, n_major(cases()));
        check_aux_of_kernel("sm90_gated_" + kernel, n_major(cases_with_aux()));
    }
    Library other(Cuda::get(), "", "sm90_gated_128x224");
    ASSERT_TRUE(other.created()) << other.story();
    for (const GemmCase& g : n_major(cases()))
        EXPECT_FALSE(is_served(other, g)) << g.print();
}

TEST(DeviceKernels, gated)
{
    NEEDS_BACKEND("sm90");
    for (const char* kernel : {"128x256_2x1/stream_k=0",
                               "128x256_2x1/stream_k=1",
                               "128x224",
                               "128x176_2x1",
                               "128x128_2x1/stream_k=0",
                               "128x128_2x1/stream_k=1",
                               "splitk_192x144",
                               "splitk_192x112",
                               "splitk_128x144",
                               "splitk_128x112_1x2",
                               "splitk_128x112_2x1",
                               "splitk_128x96",
                               "splitk_64x144",
                               "splitk_64x112_1x2",
                               "splitk_64x96",
                               "splitk_64x64",
                               "splitk_128x64_1x2",
                               "splitk_64x32_occ2/split=1",
                               "splitk_64x32_occ2/split=2",
                               "splitk_64x16_occ2/split=3",
                               "splitk_64x8_occ2"})
        check_kernel(std::string("sm90_gated_") + kernel);
}

}  // namespace hg::test
