// HGEMM_SHIM=verify names the known reason for which cuBLAS's result differs, where there is one.
#include "placed.hpp"

namespace hg::test {
namespace {

using namespace shim;

class Verify : public Shim {
protected:
    void SetUp() override
    {
        Shim::SetUp();
        ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    }
    void TearDown() override
    {
        fake_set_rounds_twice(0);
        Shim::TearDown();
    }
    // What the summary says of products of this description.
    static std::string said(const std::string& product)
    {
        const std::string text = summary() + "\n";
        const size_t begin = text.find("\n  " + product + ": ");
        if (begin == std::string::npos)
            return "nothing of " + product + ": " + text;
        size_t end = text.find('\n', begin + 1);
        while (text.compare(end, 5, "\n    ") == 0)
            end = text.find('\n', end + 1);
        return text.substr(begin + 1, end - begin - 1);
    }
};

constexpr const char* unknown = " elements differ, why is not known: sums in another order, or an error";
// The matrices of Operands have a leading dimension that is three more than the rows.
constexpr Sizes aligned{29, 17, 37};

TEST_F(Verify, tells_products_that_were_rounded_before_c_was_added)
{
    fake_set_rounds_twice(1);
    constexpr int m = 24, n = 16, k = 32;
    const auto large = [](size_t i) { return i / m == 0 ? 2048 : i / m == 1 ? 1 : 0; };
    const auto one = [](size_t) { return 1; };
    const Placed a(*memory_, HGEMM_F16, m * k, 1, large), b(*memory_, HGEMM_F16, k * n, 1, one),
        c(*memory_, HGEMM_F16, m * n, 1, one);
    const auto multiply = [&](float beta) {
        const float alpha = 1;
        EXPECT_EQ(cublasGemmEx(handle_, 0, 0, m, n, k, &alpha, a.ptr(), r_16f, m, b.ptr(), r_16f, k, &beta,
                               c.ptr(), r_16f, m, compute_32f, algo_default),
                  0);
    };
    multiply(1);
    EXPECT_EQ(c.wrong([](int, int64_t) { return 2048; }), 0) << "the program does not have cuBLAS's result";
    EXPECT_EQ(said("cublasGemmEx nn 24x16x32 f16 to f16"),
              "  cublasGemmEx nn 24x16x32 f16 to f16: 1 compared, largest difference 9.77e-04\n"
              "    384 elements differ, beta is 1: cuBLAS has rounded the product before it added C");
    // Nothing of what cuBLAS does in the same call is explained by it.
    fake_set_rounds_twice(0);
    fake_set_error(1.5);
    multiply(1);
    EXPECT_NE(said("cublasGemmEx nn 24x16x32 f16 to f16").find("\n    384" + std::string(unknown)),
              std::string::npos)
        << summary();
}

// The stand-in for batches writes nothing.
TEST_F(Verify, tells_arrays_of_pointers_at_any_element)
{
    const auto one = [](size_t) { return 1; };
    constexpr int n = 16, batch = 3;
    const Placed a(*memory_, HGEMM_F16, n * n, batch, one), b(*memory_, HGEMM_F16, n * n, batch, one),
        c(*memory_, HGEMM_F16, n * n, batch, one);
    const Block la = a.pointers(), lb = b.pointers(), lc = c.pointers();
    const float alpha = 1, beta = 0;
    EXPECT_EQ(cublasGemmBatchedEx(handle_, 0, 0, n, n, n, &alpha, la.get<const void*>(), r_16f, n,
                                  lb.get<const void*>(), r_16f, n, &beta, lc.get<void*>(), r_16f, n, batch,
                                  compute_32f, algo_default),
              0);
    EXPECT_EQ(
        said("cublasGemmBatchedEx nn 16x16x16 x3 f16 to f16"),
        "  cublasGemmBatchedEx nn 16x16x16 x3 f16 to f16: 1 compared, largest difference 1.50e+01\n"
        "    512 elements differ, in problems with a pointer that is no multiple of 16 bytes: cuBLAS 13.1 "
        "computes these wrong\n    256" +
            std::string(unknown));
}

TEST_F(Verify, tells_an_alpha_of_0_on_the_device)
{
    constexpr int n = 24;
    const Placed a(*memory_, HGEMM_F16, n * n, 1, [](size_t) { return double{NAN}; }),
        b(*memory_, HGEMM_F16, n * n, 1, [](size_t) { return 1; }),
        c(*memory_, HGEMM_F16, n * n, 1, [](size_t) { return 1; });
    Block zero(*memory_, 4);
    memory_->fill(zero.get(), 0, 4);
    cublasSetPointerMode_v2(handle_, pointers_device);
    EXPECT_EQ(cublasGemmEx(handle_, 0, 0, n, n, n, zero.get<float>(), a.ptr(), r_16f, n, b.ptr(), r_16f, n,
                           zero.get<float>(), c.ptr(), r_16f, n, compute_32f, algo_default),
              0);
    EXPECT_EQ(
        said("cublasGemmEx nn 24x24x24 f16 to f16"),
        "  cublasGemmEx nn 24x24x24 f16 to f16: 1 compared, largest difference 0.00e+00, 576 elements "
        "finite in one alone\n    576 elements differ, alpha is 0 in device memory: cuBLAS reads A and B "
        "all the same");
}

TEST_F(Verify, tells_sums_of_cublasHgemm)
{
    constexpr int n = 40;
    const auto one = [](size_t) { return 1; };
    const Placed a(*memory_, HGEMM_F16, n * n, 1, one), b(*memory_, HGEMM_F16, n * n, 1, one),
        c(*memory_, HGEMM_F16, n * n, 1, one);
    const uint16_t alpha = 0x3c00, beta = 0;
    EXPECT_EQ(cublasHgemm(handle_, 0, 0, n, n, n, &alpha, a.ptr(), n, b.ptr(), n, &beta, c.ptr(), n), 0);
    EXPECT_NE(said("cublasHgemm nn 40x40x40 f16 to f16")
                  .find("\n    1600 elements differ, cublasHgemm: cuBLAS adds in fp16, libhgemm in fp32"),
              std::string::npos)
        << summary();
}

TEST_F(Verify, does_not_pretend_to_know)
{
    fake_set_error(1.25);
    const Operands odd(*memory_, {30, 17, 37}), even(*memory_, aligned);
    EXPECT_EQ(odd.gemm_ex(handle_), 0);
    EXPECT_EQ(even.gemm_ex(handle_), 0);
    EXPECT_NE(
        said("cublasGemmEx nn 30x17x37 f16 to f16")
            .find(
                " elements differ, perhaps as a pointer or leading dimension is no multiple of 16 bytes: "),
        std::string::npos)
        << summary();
    EXPECT_NE(said("cublasGemmEx nn 29x17x37 f16 to f16").find(unknown), std::string::npos) << summary();
    fake_set_error(1);
    const Operands same(*memory_, {31, 17, 37});
    EXPECT_EQ(same.gemm_ex(handle_), 0);
    EXPECT_EQ(said("cublasGemmEx nn 31x17x37 f16 to f16"),
              "  cublasGemmEx nn 31x17x37 f16 to f16: 1 compared, largest difference 0.00e+00");
}

// The stand-in leaves D, which is 0, as it was.
TEST_F(LtShim, verify_tells_the_tail_of_gelu)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    const Placed c(device_, HGEMM_F16, o_.c.ld() * o_.size.n, 1, [](size_t) { return -5; }),
        d(device_, HGEMM_F16, o_.c.ld() * o_.size.n, 1, [](size_t) { return 0; });
    const float zero = 0, one = 1;
    set(desc_epilogue, epilogue_gelu);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &zero, o_.a.ptr(), a_, o_.b.ptr(), b_, &one, c.ptr(), c_,
                             d.ptr(), d_, nullptr, nullptr, 0, nullptr),
              0);
    EXPECT_NE(
        summary().find("\n    408 elements differ, GELU: that of cuBLASLt is NaN for -infinity and 0 from "
                       "about -5 down"),
        std::string::npos)
        << summary();
}

}  // namespace
}  // namespace hg::test
