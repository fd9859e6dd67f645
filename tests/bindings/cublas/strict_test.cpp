// HGEMM_SHIM_STRICT: half-precision products that would be passed on fail. What else would be, still is.
#include "lt_fixture.hpp"

namespace hg::test {
namespace {

using namespace shim;

constexpr int refused = 15;

class StrictShim : public LtShim {
protected:
    void SetUp() override
    {
        LtShim::SetUp();
        ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "on"), 0);
    }
    void TearDown() override
    {
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "off"), 0);
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "default"), 0);
        LtShim::TearDown();
    }
};

TEST_F(StrictShim, refuses_half_precision_products_of_libcublas)
{
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(handle_, compute_16f), refused);
    EXPECT_EQ(o.gemm_ex(handle_, 69), refused);
    EXPECT_EQ(o.gemm_ex(handle_, compute_32f, 999), refused);
    cublasSetMathMode(handle_, math_pedantic);
    const auto* a = static_cast<uint16_t*>(o.a.ptr());
    auto* const c = static_cast<uint16_t*>(o.c.ptr());
    EXPECT_EQ(cublasHgemm(handle_, 0, 0, 24, 17, 40, &o.half_alpha, a, 24, a, 40, &o.half_beta, c, 24),
              refused);
    cublasSetMathMode(handle_, 0);
    cublasSetPointerMode_v2(handle_, pointers_device);
    EXPECT_EQ(cublasHgemm(handle_, 0, 0, 24, 17, 40, &o.half_alpha, a, 24, a, 40, &o.half_beta, c, 24),
              refused);
    cublasSetPointerMode_v2(handle_, pointers_host);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(passed_on(), 0u);
    EXPECT_EQ(served(), 0u);
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(served(), 1u);
}

TEST_F(StrictShim, refuses_half_precision_products_of_cublaslt)
{
    LtAlgorithm made{};
    ASSERT_EQ(cublasLtMatmulAlgoInit(handle_, compute_32f, r_32f, 2, 2, 2, 2, 22, &made), 0);
    EXPECT_EQ(multiply(&made), refused);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    EXPECT_EQ(multiply(&made), 0);
    set(desc_epilogue, uint32_t{128 | epilogue_relu});
    EXPECT_EQ(multiply(), refused);
    set(desc_epilogue, epilogue_default);
    set(desc_a_scale_pointer, o_.a.ptr());
    EXPECT_EQ(multiply(), refused);
    set<void*>(desc_a_scale_pointer, nullptr);
    set_layout(a_, layout_order, 2);
    EXPECT_EQ(multiply(), refused);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(passed_on(), 0u);
}

// Wrong calls pass in strict mode, for cuBLAS to refuse: not those to which it may give a result.
TEST_F(StrictShim, refuses_what_cublas_may_accept)
{
    const auto multiply_without_c = [&] {
        return cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta, nullptr,
                              c_, d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr);
    };
    EXPECT_EQ(multiply_without_c(), refused);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta,
                             o_.c.ptr(), nullptr, d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
              refused);
    set(desc_transb, 9);
    EXPECT_EQ(multiply(), refused);
    EXPECT_EQ(calls(), "");
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "off"), 0);
    EXPECT_EQ(multiply(), 7);
    set(desc_transb, op_n);
    EXPECT_EQ(multiply_without_c(), 7);
    EXPECT_EQ(calls(), "cublasLtMatmul cublasLtMatmul ");
}

TEST_F(StrictShim, lets_cublas_refuse_a_workspace)
{
    const Block memory(device_, 256);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta,
                             o_.c.ptr(), c_, d_matrix_.ptr(), d_, nullptr, memory.get<char>() + 4, 128,
                             nullptr),
              7);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
}

// Layouts with arrays of sizes (CUBLASLT_BATCH_MODE_GROUPED), whatever is read as their size.
TEST_F(StrictShim, refuses_layouts_of_groups)
{
    for (const int64_t ld : {1000, 0}) {
        for (void* layout : {a_, b_, c_, d_}) {
            set_layout(layout, layout_batch_mode, 2);
            set_layout(layout, layout_ld, ld);
        }
        EXPECT_EQ(multiply(), refused);
    }
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(passed_on(), 0u);
}

TEST_F(StrictShim, refuses_what_verify_cannot_compare)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM", "verify"), 0);
    EXPECT_EQ(cublasGemmStridedBatchedEx_64(handle_, 0, 0, 24, 17, 40, &o_.alpha, o_.a.ptr(), r_16f, 43, 0,
                                            o_.b.ptr(), r_16f, 43, 0, &o_.beta, o_.c.ptr(), r_16f, 27, 1,
                                            int64_t{1} << 61, compute_32f, algo_default),
              refused);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(o_.gemm_ex(handle_), 0);
    EXPECT_EQ(calls(), "cublasGemmEx ");
}

TEST_F(StrictShim, passes_on_other_types)
{
    const Operands single(*memory_, {}, 0, 0, r_32f, r_32f);
    for (const int compute : {compute_32f, compute_32f_fast_16f, compute_32f_fast_tf32}) {
        EXPECT_EQ(single.gemm_ex(handle_, compute), 0);
        EXPECT_EQ(calls(), "cublasGemmEx ");
    }
    LtAlgorithm made{};
    ASSERT_EQ(cublasLtMatmulAlgoInit(handle_, compute_32f, r_32f, 0, 0, 0, 0, 23, &made), 0);
    for (void* layout : {a_, b_, c_, d_})
        set_layout(layout, layout_type, r_32f);
    set(desc_epilogue, uint32_t{8});
    EXPECT_EQ(multiply(&made), 0);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
}

TEST_F(StrictShim, passes_on_what_gives_no_result)
{
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(nullptr), 1);
    const auto product = [&](int m, int lda) {
        return cublasGemmEx(handle_, 0, 0, m, 17, 40, &o.alpha, o.a.ptr(), r_16f, lda, o.b.ptr(), r_16f, 40,
                            &o.beta, o.c.ptr(), r_16f, 24, compute_32f, 99);
    };
    EXPECT_EQ(product(-1, 24), 7);
    EXPECT_EQ(product(24, 23), 7);
    EXPECT_EQ(product(0, 24), 0);
    const LtAlgorithm zeros{};
    EXPECT_EQ(multiply(&zeros), 7);
    EXPECT_EQ(cublasLtMatmul(handle_, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr),
              7);
    EXPECT_EQ(passed_on(), 6u);
}

TEST_F(StrictShim, passes_on_what_cublas_calls_itself)
{
    fake_set_nested(1);
    const Operands single(*memory_, {}, 0, 0, r_32f, r_32f);
    EXPECT_EQ(single.gemm_ex(handle_), 0);
    EXPECT_EQ(calls(), "cublasGemmEx cublasLtMatmul ");
}

TEST_F(StrictShim, is_nothing_while_the_shim_is_off)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM", "off"), 0);
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(calls(), "cublasGemmEx cublasLtMatmul ");
}

TEST_F(StrictShim, counts_what_it_refuses)
{
    const auto refusals = [] {
        const std::string text = summary(), end = " half-precision products refused (HGEMM_SHIM_STRICT)";
        const size_t at = text.find(end), begin = text.rfind('\n', at);
        return at == std::string::npos ? -1 : std::stol(text.substr(begin));
    };
    const Operands o(*memory_, {});
    const long before = refusals();
    ASSERT_EQ(o.gemm_ex(handle_, compute_16f), refused);
    EXPECT_EQ(refusals(), before + 1);
}

// What a graph records under HGEMM_SHIM=verify is libhgemm's.
TEST_F(StrictShim, counts_what_came_from_cublas)
{
    const auto left = [] {
        const std::string text = summary(), end = " half-precision products came from cuBLAS";
        const size_t at = text.find(end), begin = text.rfind('\n', at);
        return at == std::string::npos ? -1 : std::stol(text.substr(begin));
    };
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM", "verify"), 0);
    ASSERT_EQ(o_.gemm_ex(handle_), 0);
    const long before = left();
    EXPECT_GE(before, 1);
    CUstream_st* stream = Cuda::get()->create_stream();
    cublasSetStream_v2(handle_, stream);
    CUgraphExec_st* graph = Cuda::get()->capture(stream, [&] { EXPECT_EQ(o_.gemm_ex(handle_), 0); });
    EXPECT_EQ(left(), before);
    Cuda::get()->destroy(graph);
    cublasSetStream_v2(handle_, nullptr);
    Cuda::get()->destroy(stream);
    ASSERT_EQ(o_.gemm_ex(handle_), 0);
    EXPECT_EQ(left(), before + 1);
}

TEST_F(Shim, settings_are_read_and_set)
{
    const std::pair<const char*, const char*> settings[] = {{"HGEMM_SHIM", "on"},
                                                            {"HGEMM_SHIM_MODE", "default"},
                                                            {"HGEMM_SHIM_STRICT", "off"},
                                                            {"HGEMM_SHIM_SYRK", "off"},
                                                            {"HGEMM_SHIM_LOG", "off"}};
    for (const auto& [variable, value] : settings) {
        EXPECT_EQ(hgemm_shim_set(variable, value), 0);
        EXPECT_STREQ(hgemm_shim_get(variable), value);
        EXPECT_EQ(hgemm_shim_set(variable, "perhaps"), -1);
        EXPECT_EQ(hgemm_shim_set(variable, nullptr), -1);
        EXPECT_STREQ(hgemm_shim_get(variable), value);
    }
    EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "1"), 0);
    EXPECT_STREQ(hgemm_shim_get("HGEMM_SHIM_STRICT"), "1");
    EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "0"), 0);
    EXPECT_EQ(hgemm_shim_set("HGEMM_KERNEL", "?"), -1);
    EXPECT_EQ(hgemm_shim_set(nullptr, "on"), -1);
    EXPECT_EQ(hgemm_shim_get("HGEMM_KERNEL"), nullptr);
    EXPECT_EQ(hgemm_shim_get(nullptr), nullptr);
}

}  // namespace
}  // namespace hg::test
