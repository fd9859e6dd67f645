// The conformance suite through the CBLAS functions, on host memory; what they cannot express is counted as
// not applicable.
#include "../../conformance.hpp"
#include "src/tools/support/number.hpp"

#include "hgemm_cblas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace hg::test {
namespace {

bool is_expressible(const hgemm_args_t& g)
{
    const bool narrow = g.type_d == g.type_ab;
    const bool scalars_fit = !narrow || (round_to(g.type_d, g.alpha) == static_cast<double>(g.alpha) &&
                                         round_to(g.type_d, g.beta) == static_cast<double>(g.beta));
    const bool one_c = g.beta == 0 || (g.c == g.d && g.ldc == g.ldd && g.type_c == g.type_d);
    return g.batch_count == 1 && !g.d_array && (narrow || g.type_d == HGEMM_F32) && scalars_fit && one_c &&
           !g.alpha_device && !g.beta_device && g.bias_mode == HGEMM_BIAS_NONE &&
           g.activation == HGEMM_ACTIVATION_NONE && !g.aux;
}

class CblasEngine : public Engine {
public:
    Memory& memory() override { return memory_; }
    // Products on the GPU are of the virtual driver's device.
    Arithmetic arithmetic() const override
    {
        return std::getenv("EMU_ARCH") ? Arithmetic::of_device(90) : Arithmetic::of_cpu();
    }
    bool forced() const override { return true; }
    std::string story() const override { return story_; }
    bool set_batch_invariant(bool on) override { return !on; }

    hgemm_status_t run(const hgemm_args_t& g) override
    {
        if (!is_expressible(g))
            return HGEMM_STATUS_NOT_SUPPORTED;
        story_ = "";
        ++turn_;
        if (g.type_d == HGEMM_F32)
            call_to_f32(g);
        else
            call_narrow(g);
        return hgemm_cblas_status();
    }

private:
    static int i(int64_t value) { return static_cast<int>(value); }

    void call_to_f32(const hgemm_args_t& g)
    {
        const bool f16 = g.type_ab == HGEMM_F16, odd = turn_ % 2;
        const auto function = f16 ? (odd ? cblas_shgemm : cblas_gemm_f16f16f32)
                                  : (odd ? cblas_sbgemm : cblas_gemm_bf16bf16f32);
        function(g.layout, g.transa, g.transb, i(g.m), i(g.n), i(g.k), g.alpha,
                 static_cast<const uint16_t*>(g.a), i(g.lda), static_cast<const uint16_t*>(g.b), i(g.ldb),
                 g.beta, static_cast<float*>(g.d), i(g.ldd));
    }

    void call_narrow(const hgemm_args_t& g)
    {
        const auto function = g.type_ab == HGEMM_F16 ? cblas_hgemm : cblas_bgemm;
        const auto bits = [&](float value) { return static_cast<uint16_t>(encode(g.type_d, value)); };
        function(g.layout, g.transa, g.transb, i(g.m), i(g.n), i(g.k), bits(g.alpha),
                 static_cast<const uint16_t*>(g.a), i(g.lda), static_cast<const uint16_t*>(g.b), i(g.ldb),
                 bits(g.beta), static_cast<uint16_t*>(g.d), i(g.ldd));
    }

    HostMemory memory_;
    std::string story_;
    unsigned turn_ = 0;
};

class Conformance : public testing::TestWithParam<Family> {};

TEST_P(Conformance, holds)
{
    // The host backend has passed all cases by itself.
    CblasEngine engine;
    Suite suite(engine, thinning(4));
    GetParam().run(suite);
    std::printf("%s\n", suite.summary().c_str());
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << failure;
    EXPECT_LT(suite.not_applicable(), suite.cases());
}

constexpr Family expressible[] = {
    {"sizes", sizes},
    {"combinations", combinations},
    {"ragged_lines", ragged_lines},
    {"rounding", rounding},
    {"special_values", special_values},
    {"unread_operands", unread_operands},
    {"accumulator_width", accumulator_width},
    {"random_data", random_data},
    {"long_sums", long_sums},
    {"fences", fences},
    {"repetition", repetition},
};

INSTANTIATE_TEST_SUITE_P(Cblas, Conformance, testing::ValuesIn(expressible),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hg::test
