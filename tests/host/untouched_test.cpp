// Products that leave C as it is: no bit of it changes, whatever it holds.
#include "../library.hpp"
#include "message.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hg::test {
namespace {

// -0, a quiet NaN with a payload and a signalling one, of fp16 and bf16.
constexpr uint16_t odd_halves[] = {0x8000, 0x7e55, 0xfd01, 0x7faa, 0xff81, 0x0001};

class Untouched : public testing::Test {
protected:
    static constexpr int64_t n = 6;

    Untouched()
    {
        for (int64_t i = 0; i < n * n; ++i)
            c.push_back(odd_halves[static_cast<size_t>(i % n)]);
        before = c;
    }
    void expect_untouched(hgemm_status_t status, const std::string& what)
    {
        EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << what << ": " << hgemm_last_error();
        EXPECT_EQ(c, before) << what;
        c = before;
    }
    hgemm_args_t args(float alpha, int64_t k)
    {
        hgemm_args_t g;
        hgemm_args_init(&g, sizeof g);
        g.m = g.n = g.ldc = g.ldd = n;
        g.lda = g.ldb = 8;
        g.k = k;
        g.alpha = alpha;
        g.beta = 1;
        g.c = g.d = c.data();
        return g;
    }

    Library library{nullptr};
    hgemm_handle_t handle = library.handle();
    std::vector<uint16_t> c, before;
};

TEST_F(Untouched, by_every_function)
{
    uint16_t* const d = c.data();
    for (const auto& [alpha, k] : {std::pair{0.0f, int64_t{4}}, {1.0f, int64_t{0}}}) {
        for (const auto function : {hgemm_nn, hgemm_tt, bgemm_nt, bgemm_tn})
            expect_untouched(function(handle, n, n, k, alpha, nullptr, 8, nullptr, 8, 1, d, n),
                             "short form");
        expect_untouched(hgemm_strided_batched(handle, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 2, n,
                                               k, alpha, nullptr, 8, 0, nullptr, 8, 0, 1, d, n, 2 * n, 3),
                         "batch");
        uint16_t* const outputs[] = {d, d + 2 * n};
        expect_untouched(bgemm_batched(handle, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 2, n, k, alpha,
                                       nullptr, 8, nullptr, 8, 1, outputs, n, 2),
                         "arrays");
        hgemm_args_t g = args(alpha, k);
        expect_untouched(hgemm_gemm_ex(handle, &g), "general form");
        hgemm_grouped_args_t grouped;
        hgemm_grouped_args_init(&grouped, sizeof grouped);
        const int64_t offsets[] = {0, 2, n};
        grouped.group_count = 2;
        grouped.offsets = offsets;
        grouped.m = grouped.n = grouped.ldd = n;
        grouped.lda = grouped.ldb = 8;
        grouped.k = k;
        grouped.alpha = alpha;
        grouped.beta = 1;
        grouped.d = d;
        expect_untouched(hgemm_grouped_ex(handle, &grouped), "groups");
    }
    for (const auto function : {hgemv_n, hgemv_t, bgemv_n, bgemv_t})
        expect_untouched(function(handle, n, n, 0, nullptr, n, nullptr, 1, 1, d, 1), "vector");
}

TEST_F(Untouched, is_explained)
{
    const hgemm_args_t g = args(1, 0);
    char text[100];
    EXPECT_EQ(hgemm_explain(handle, &g, text, sizeof text), HGEMM_STATUS_SUCCESS);
    EXPECT_STREQ(text, "nothing to compute: D is C as it is");
    size_t bytes = 7;
    EXPECT_EQ(hgemm_workspace_size(handle, &g, &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(bytes, 0u);
}

// What is asked for beside it is still done.
TEST_F(Untouched, only_where_nothing_else_is_asked_for)
{
    const float one = 1, biases[n] = {1, 1, 1, 1, 1, 1};
    std::vector<uint16_t> other(n * n, 0x3c00);
    const auto changed = [&](const char* what, auto change) {
        hgemm_args_t g = args(0, 4);
        c.assign(c.size(), 0x3c00);
        std::vector<uint16_t> output(n * n, 0x1234);
        change(g, output.data());
        EXPECT_EQ(hgemm_gemm_ex(handle, &g), HGEMM_STATUS_SUCCESS) << what << ": " << hgemm_last_error();
        EXPECT_TRUE(c != std::vector<uint16_t>(n * n, 0x3c00) ||
                    output != std::vector<uint16_t>(n * n, 0x1234))
            << what;
    };
    changed("beta", [](auto& g, void*) { g.beta = 2; });
    changed("bias",
            [&](auto& g, void*) { g.bias_mode = HGEMM_BIAS_M, g.bias_type = HGEMM_F32, g.bias = biases; });
    changed("activation", [](auto& g, void*) { g.activation = HGEMM_ACTIVATION_SILU; });
    changed("aux", [](auto& g, void* output) { g.aux = output, g.ldaux = n; });
    changed("D", [](auto& g, void* output) { g.d = output; });
    changed("C", [&](auto& g, void* output) { g.c = other.data(), g.d = output; });
    changed("beta in memory, C elsewhere",
            [&](auto& g, void* output) { g.beta_device = &one, g.d = output; });
}

}  // namespace
}  // namespace hg::test
