// What is not served reaches the real library as it was called, and its status comes back.
#include "lt_fixture.hpp"

namespace hg::test {
namespace {

using namespace shim;

TEST_F(Shim, passes_on_other_types_and_compute_types)
{
    const Operands o(*memory_, {});
    for (const int compute : {compute_16f, 65, 69, 72, 74, 75, 77, 78}) {
        EXPECT_EQ(o.gemm_ex(handle_, compute), compute == 72 ? 15 : 0) << compute;
        EXPECT_EQ(calls(), "cublasGemmEx ") << compute;
    }
    const Operands mixed(*memory_, {}, 0, 0, r_16f, r_16bf);
    mixed.gemm_ex(handle_);
    EXPECT_EQ(calls(), "cublasGemmEx ");
    const Operands single(*memory_, {}, 0, 0, r_32f, r_32f);
    single.gemm_ex(handle_);
    EXPECT_EQ(calls(), "cublasGemmEx ");
    EXPECT_EQ(single.wrong(), 0);
    EXPECT_EQ(served(), 0u);
    EXPECT_EQ(passed_on(), 10u);
}

TEST_F(Shim, serves_numbered_algorithms)
{
    for (const int algorithm : {-1, 0, 23, 99, 115}) {
        const Operands o(*memory_, {});
        EXPECT_EQ(o.gemm_ex(handle_, compute_32f, algorithm), 0);
        EXPECT_EQ(o.wrong(), 0);
    }
    EXPECT_EQ(calls(), "");
    const Operands o(*memory_, {});
    for (const int algorithm : {-2, 24, 98, 116, 999})
        EXPECT_EQ(o.gemm_ex(handle_, compute_32f, algorithm), 0);
    EXPECT_EQ(served(), 5u);
    EXPECT_EQ(passed_on(), 5u);
}

TEST_F(Shim, wrong_calls_get_the_real_status)
{
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(nullptr), 1);
    const float one = 1;
    const auto call = [&](int transa, int m, int n, int k, int lda, const void* a) {
        return cublasGemmEx(handle_, transa, 0, m, n, k, &one, a, r_16f, lda, o.b.ptr(), r_16f, 40, &one,
                            o.c.ptr(), r_16f, 24, compute_32f, 99);
    };
    EXPECT_EQ(call(0, -1, 17, 40, 24, o.a.ptr()), 7);
    EXPECT_EQ(call(0, 24, -1, 40, 24, o.a.ptr()), 7);
    EXPECT_EQ(call(0, 24, 17, -1, 24, o.a.ptr()), 7);
    EXPECT_EQ(call(3, 24, 17, 40, 40, o.a.ptr()), 7);
    EXPECT_EQ(served(), 0u);
    EXPECT_EQ(calls(), "cublasGemmEx cublasGemmEx cublasGemmEx cublasGemmEx cublasGemmEx ");
    EXPECT_EQ(cublasHgemm(nullptr, 0, 0, 1, 1, 1, nullptr, nullptr, 1, nullptr, 1, nullptr, nullptr, 1), 1);
    EXPECT_EQ(cublasLtMatmul(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr),
              1);
    EXPECT_EQ(cublasSetStream_v2(nullptr, nullptr), 1);
    EXPECT_EQ(cublasSetWorkspace_v2(nullptr, nullptr, 0), 1);
    EXPECT_EQ(cublasDestroy_v2(nullptr), 1);
}

TEST_F(Shim, passes_on_leading_dimensions_that_are_too_small)
{
    const Operands o(*memory_, {});
    const float one = 1;
    for (const auto& [lda, ldb, ldc] : {std::array{23, 40, 24}, {24, 39, 24}, {24, 40, 23}}) {
        cublasGemmEx(handle_, 0, 0, 24, 17, 40, &one, o.a.ptr(), r_16f, lda, o.b.ptr(), r_16f, ldb, &one,
                     o.c.ptr(), r_16f, ldc, compute_32f, 99);
        EXPECT_EQ(calls(), "cublasGemmEx ");
    }
    EXPECT_EQ(served(), 0u);
}

TEST_F(Shim, passes_on_empty_products)
{
    for (const Sizes& sizes : {Sizes{0, 17, 40}, Sizes{24, 0, 40}}) {
        const Operands o(*memory_, {});
        const float one = 1;
        EXPECT_EQ(cublasGemmEx(handle_, 0, 0, static_cast<int>(sizes.m), static_cast<int>(sizes.n), 40,
                               &one, o.a.ptr(), r_16f, 24, o.b.ptr(), r_16f, 40, &one, o.c.ptr(), r_16f, 24,
                               compute_32f, 99),
                  0);
        EXPECT_EQ(calls(), "cublasGemmEx ");
    }
}

TEST_F(Shim, passes_on_hgemm_in_pedantic_mode)
{
    const Operands o(*memory_, {});
    cublasSetMathMode(handle_, math_pedantic);
    const auto* a = static_cast<uint16_t*>(o.a.ptr());
    EXPECT_EQ(cublasHgemm(handle_, 0, 0, 24, 17, 40, &o.half_alpha, a, 24, a, 40, &o.half_beta,
                          static_cast<uint16_t*>(o.c.ptr()), 24),
              0);
    EXPECT_EQ(calls(), "cublasHgemm ");
    // The mode says nothing about a call that names its compute type.
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(Shim, leaves_calls_of_cublas_itself_alone)
{
    fake_set_nested(1);
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(handle_, 69), 0);
    EXPECT_EQ(calls(), "cublasGemmEx cublasLtMatmul ");
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(served(), 0u);
    EXPECT_NE(summary().find("made by cuBLAS itself"), std::string::npos);
}

TEST_F(Shim, mode_off_passes_everything_on)
{
    ASSERT_EQ(hgemm_shim_set_mode("off"), 0);
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(calls(), "cublasGemmEx ");
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(hgemm_shim_set_mode("sometimes"), -1);
    EXPECT_EQ(hgemm_shim_set_mode(nullptr), -1);
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(calls(), "cublasGemmEx ");
}

TEST_F(LtShim, passes_on_what_it_does_not_know)
{
    const auto passed = [&](const char* what, int status = 0) {
        EXPECT_EQ(multiply(), status) << what;
        EXPECT_EQ(calls(), "cublasLtMatmul ") << what;
    };
    set(desc_epilogue, uint32_t{128 | epilogue_relu});
    passed("aux");
    set(desc_epilogue, uint32_t{8});
    passed("gradient");
    set(desc_epilogue, epilogue_bias);
    passed("no bias");
    set(desc_bias_pointer, o_.c.ptr());
    set(desc_bias_data_type, r_32f);
    passed("bias of another type");
    set(desc_epilogue, epilogue_default);
    set(desc_pointer_mode, 2);
    passed("vector of alpha");
    set(desc_pointer_mode, pointers_host);
    set(desc_transc, op_t);
    passed("transposed C");
    set(desc_transc, op_n);
    set(desc_a_scale_pointer, o_.a.ptr());
    passed("scale factor");
    set<void*>(desc_a_scale_pointer, nullptr);
    set_layout(a_, layout_order, 2);
    passed("tiled order");
    set_layout(a_, layout_order, order_col);
    set_layout(a_, layout_batch_count, 2);
    passed("batch counts that differ", 7);
    set_layout(a_, layout_batch_count, 1);
    for (void* layout : {a_, b_, c_, d_})
        set_layout(layout, layout_batch_mode, 2);
    passed("groups");
    for (void* layout : {a_, b_, c_, d_})
        set_layout(layout, layout_batch_mode, batch_strided);
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, honours_algorithms_that_the_caller_made)
{
    LtAlgorithm proposed{{17, 4}}, made{};
    EXPECT_EQ(multiply(&made), 7);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
    EXPECT_EQ(multiply(&proposed), 0);
    EXPECT_EQ(calls(), "");
    ASSERT_EQ(cublasLtMatmulAlgoInit(handle_, compute_32f, r_32f, 2, 2, 2, 2, 21, &made), 0);
    multiply(&made);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
    const uint32_t tile = 20;
    ASSERT_EQ(cublasLtMatmulAlgoConfigSetAttribute(&made, 1, &tile, sizeof tile), 0);
    multiply(&made);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
    multiply(&proposed);
    multiply();
    EXPECT_EQ(calls(), "");
}

// Counters that say which chunks of A and B are there, and which of D: cuBLAS 12 has them.
TEST_F(LtShim, passes_on_chunks_that_wait_for_each_other)
{
    setenv("FAKE_CUBLAS_MAJOR", "12", 1);
    cublasLtMatmulDescDestroy(desc_);
    cublasLtMatmulDescCreate(&desc_, compute_32f, r_32f);
    unsetenv("FAKE_CUBLAS_MAJOR");
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(calls(), "");
    for (const int counters : {desc_atomic_sync_in_counters, desc_atomic_sync_out_counters}) {
        set(counters, o_.c.ptr());
        EXPECT_EQ(multiply(), 0);
        EXPECT_EQ(calls(), "cublasLtMatmul ");
        set<void*>(counters, nullptr);
    }
}

TEST_F(LtShim, honours_algorithms_that_are_not_to_split_k)
{
    void* preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    for (const uint32_t mask : {7u, 0u, 2u, 0u}) {
        ASSERT_EQ(
            cublasLtMatmulPreferenceSetAttribute(preference, preference_reduction_mask, &mask, sizeof mask),
            0);
        LtHeuristicResult result{};
        int found = 0;
        ASSERT_EQ(
            cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, c_, d_, preference, 1, &result, &found),
            0);
        ASSERT_EQ(found, 1);
        EXPECT_EQ(multiply(&result.algorithm), 0);
        EXPECT_EQ(calls(), mask == 0 ? "cublasLtMatmul " : "") << mask;
    }
    EXPECT_NE(summary().find("an algorithm that does not split k"), std::string::npos);
    cublasLtMatmulPreferenceDestroy(preference);
}

// Results that no memory holds a second time: too many problems for a list, for an allocation, with their
// bytes for an integer; lines too far apart.
TEST_F(Shim, verify_passes_on_what_it_cannot_keep)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    const Operands o(*memory_, {});
    const auto product = [&](int64_t ldc, int64_t batch) {
        return cublasGemmStridedBatchedEx_64(
            handle_, 0, 0, o.size.m, o.size.n, o.size.k, &o.alpha, o.a.ptr(), r_16f, o.a.ld(), 0, o.b.ptr(),
            r_16f, o.b.ld(), 0, &o.beta, o.c.ptr(), r_16f, ldc, 1, batch, compute_32f, algo_default);
    };
    for (const int power : {61, 59, 56}) {
        EXPECT_EQ(product(o.c.ld(), int64_t{1} << power), 0);
        EXPECT_EQ(calls(), "cublasGemmStridedBatchedEx_64 ") << power;
    }
    EXPECT_EQ(product(int64_t{1} << 62, 1), 0);
    EXPECT_EQ(calls(), "cublasGemmStridedBatchedEx_64 ");
    EXPECT_EQ(passed_on(), 4u);
    EXPECT_EQ(served(), 0u);
}

}  // namespace
}  // namespace hg::test
