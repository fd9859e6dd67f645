// Gated results of forced kernels: NaN and infinities, and the bits of batch-invariant mode, which
// are those of any other way.
#include "../gate_rules.hpp"
#include "../handle_scopes.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hg::test {
namespace {

std::vector<double> judged_results(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << g.print();
    return trial.results(g.m);
}

bool is_by_kernel(Library& library, const GemmCase& g)
{
    const Trial trial(g, library.memory());
    return library.explain(trial.args()).find("kernel=sm90_gated") != std::string::npos;
}

constexpr const char* with_gates[] = {"sm90_gated_128x256_2x1", "sm90_gated_128x176_2x1",
                                      "sm90_gated_128x128_2x1"};

}  // namespace

TEST(DeviceKernels, gated_values)
{
    NEEDS_BACKEND("sm90");
    for (const char* kernel : with_gates) {
        Library library(Cuda::get(), "", kernel);
        ASSERT_TRUE(library.created()) << library.story();
        check_gate_values(library, false);
    }
}

TEST(DeviceKernels, gated_bits)
{
    NEEDS_BACKEND("sm90");
    Library any(Cuda::get(), "sm90");
    const InMode in_mode(any, HGEMM_MODE_BATCH_INVARIANT);
    int compared = 0;
    for (const char* kernel : with_gates) {
        Library forced(Cuda::get(), "", kernel);
        ASSERT_TRUE(forced.created()) << forced.story();
        const InMode forced_in_mode(forced, HGEMM_MODE_BATCH_INVARIANT);
        for (const unsigned form : {1u, 3u, 5u, 9u}) {  // row-major: NONE to SiLU, without GELU by erf
            GemmCase g = gate_case(form, 130, 176, 328, form == 5 ? 8 : 0);
            g.transa = HGEMM_NO_TRANS;
            g.transb = HGEMM_TRANS;
            g.type_d = g.type_ab;
            g.aligned = true;
            g.bias = form % 4 == 1 ? HGEMM_BIAS_N : HGEMM_BIAS_NONE;
            g.bias_type = form == 5 ? HGEMM_F32 : g.type_ab;
            if (g.activation == HGEMM_ACTIVATION_GELU_ERF)
                g.activation = HGEMM_ACTIVATION_GELU_TANH;
            if (!is_by_kernel(forced, g))
                continue;
            GemmCase in_parts = g, with_aux = g;
            with_aux.aux = in_parts.aux = true;
            in_parts.aligned = false;  // which all is nevertheless, but for aux
            in_parts.aux_place.shift = 1;
            EXPECT_FALSE(is_by_kernel(any, in_parts)) << g.print();
            EXPECT_TRUE(is_by_kernel(forced, with_aux)) << g.print();
            const std::vector<double> wanted = judged_results(any, in_parts);
            EXPECT_TRUE(judged_results(forced, g) == wanted) << kernel << ": " << g.print();
            EXPECT_TRUE(judged_results(forced, with_aux) == wanted) << kernel << ": " << g.print();
            EXPECT_TRUE(judged_results(any, g) == wanted) << g.print();
            ++compared;
        }
    }
    EXPECT_GE(compared, 9);
}

}  // namespace hg::test
