// The host backend in a program that has changed the floating-point environment: results as in the default
// one, and the program's own left as it was.
#include "hgemm.h"
#include "src/base/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <fpu_control.h>
#endif

namespace hg {
namespace {

// The control and status word of the unit that computes floats.
#if defined(__x86_64__)
uint64_t control_word() { return _mm_getcsr(); }
void flush_subnormals() { _mm_setcsr(_mm_getcsr() | 0x8040); }  // FTZ and DAZ
void set_default() { std::fesetenv(FE_DFL_ENV); }
#elif defined(__aarch64__)
uint64_t control_word()
{
    fpu_control_t control;
    fpu_fpsr_t status;
    _FPU_GETCW(control);
    _FPU_GETFPSR(status);
    return uint64_t{control} << 32 | status;
}
// Not by fesetenv(), which keeps the bits that it does not know.
void add_control(fpu_control_t bits)
{
    fpu_control_t control;
    _FPU_GETCW(control);
    control |= bits;
    _FPU_SETCW(control);
}
void flush_subnormals() { add_control(1u << 24); }  // FZ
void set_default()
{
    std::fesetenv(FE_DFL_ENV);
    const fpu_control_t control = 0;
    _FPU_SETCW(control);
}
#endif

struct Environment {
    const char* name;
    std::function<void()> set;
};

const Environment environments[] = {
    {"subnormals flushed", flush_subnormals},
    {"rounding upward", [] { std::fesetround(FE_UPWARD); }},
    {"rounding to zero", [] { std::fesetround(FE_TOWARDZERO); }},
    {"traps", [] { feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW); }},
    {"flags raised", [] { std::feraiseexcept(FE_UNDERFLOW | FE_INVALID); }},
#if defined(__aarch64__)
    {"alternative halves", [] { add_control(1u << 26); }},       // AHP
    {"NaN without its bits", [] { add_control(1u << 25); }},     // DN
    {"half subnormals flushed", [] { add_control(1u << 19); }},  // FZ16
#endif
};

// D = alpha * A * B with all of A and all of B the same number.
class Product {
public:
    Product(hgemm_type_t type_d, int64_t m, int64_t n, int64_t k, float a, float b, float alpha)
        : Product(HGEMM_BF16, type_d, m, n, k, float_to_bfloat16(a), float_to_bfloat16(b), alpha)
    {
    }
    // By their bits.
    Product(hgemm_type_t type_ab, hgemm_type_t type_d, int64_t m, int64_t n, int64_t k, uint16_t a,
            uint16_t b, float alpha)
        : a_(m * k, a), b_(k * n, b), d_(m * n)
    {
        hgemm_args_init(&args_, sizeof args_);
        args_.type_ab = type_ab;
        args_.type_d = type_d;
        args_.m = m, args_.n = n, args_.k = k;
        args_.a = a_.data(), args_.b = b_.data(), args_.d = d_.data();
        args_.lda = args_.ldd = m, args_.ldb = k;
        args_.alpha = alpha;
    }
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    const std::vector<float>& run(hgemm_handle_t handle)
    {
        d_.assign(d_.size(), NAN);
        EXPECT_EQ(hgemm_gemm_ex(handle, &args_), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        return d_;
    }

private:
    std::vector<uint16_t> a_, b_;
    std::vector<float> d_;
    hgemm_args_t args_;
};

// Bits, so that NaN equals NaN and -0 is not 0.
bool same(const std::vector<float>& a, const std::vector<float>& b)
{
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ApiHostHandle {
public:
    ApiHostHandle() { EXPECT_EQ(hgemm_create_on(&handle_, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS); }
    ~ApiHostHandle() { hgemm_destroy(handle_); }
    ApiHostHandle(const ApiHostHandle&) = delete;
    ApiHostHandle& operator=(const ApiHostHandle&) = delete;
    operator hgemm_handle_t() const { return handle_; }

private:
    hgemm_handle_t handle_ = nullptr;
};

class FloatEnvironment : public testing::TestWithParam<Environment> {
protected:
    void TearDown() override { set_default(); }

    // The product on a handle from before the environment changed and on one from after it, so often as it
    // takes to meet every division of the work among the threads.
    void expect_unmoved(Product&& product, int calls = 40)
    {
        set_default();
        const ApiHostHandle before;
        const std::vector<float> wanted = product.run(before);
        GetParam().set();
        const uint64_t control = control_word();
        const ApiHostHandle after;
        for (int call = 0; call < calls && !HasFailure(); ++call) {
            EXPECT_TRUE(same(product.run(call % 2 ? after : before), wanted)) << "call " << call;
            EXPECT_EQ(control_word(), control) << "call " << call;
        }
    }
};

TEST_P(FloatEnvironment, SubnormalResultsKeepTheirBits)
{
    expect_unmoved({HGEMM_BF16, 256, 128, 1, 1, 0x1p-10f, 0x1p-120f}, 400);
}

TEST_P(FloatEnvironment, RoundedResultsKeepTheirBits)
{
    expect_unmoved({HGEMM_F32, 256, 128, 3, 1.0f / 3, 0.7f, 1.0f / 3});
}

TEST_P(FloatEnvironment, FewRowsKeepTheirBits)
{
    expect_unmoved({HGEMM_F32, 2, 40000, 3, 0x1p-100f, 0x1.8p-30f, 1.0f / 3});
}

// On several threads, which multiply subnormal numbers.
TEST_P(FloatEnvironment, PackedSubnormalsKeepTheirBits)
{
    expect_unmoved({HGEMM_F32, 512, 512, 64, 0x1p-130f, 3, 1}, 8);  // subnormal numbers take their time
    expect_unmoved({HGEMM_F32, 512, 512, 64, 1.0f / 3, 0.7f, 1});
}

TEST_P(FloatEnvironment, InfinityTimesZeroIsNaN)
{
    expect_unmoved({HGEMM_F32, 256, 128, 1, INFINITY, 0, 1});
}

// An infinity, NaN of several bits and the least subnormal, in both kernels.
TEST_P(FloatEnvironment, HalvesKeepTheirMeaning)
{
    for (const uint16_t half : {0x7c00, 0x7e01, 0xfe23, 0x0001})
        for (const int64_t m : {int64_t{1}, int64_t{64}}) {
            expect_unmoved({HGEMM_F16, HGEMM_F32, m, 64, 1, half, 0x3c00, 1}, 4);
            expect_unmoved({HGEMM_F16, HGEMM_F16, m, 64, 1, half, 0x3c00, 1}, 4);
        }
}

// Large enough for all of OpenBLAS's threads, which inherit the environment of the thread that starts them.
TEST_P(FloatEnvironment, ThreadsOfOpenBlasKeepSubnormals)
{
    GetParam().set();
    setenv("HGEMM_KERNEL", "host_blocked", 1);
    const ApiHostHandle handle;
    unsetenv("HGEMM_KERNEL");
    Product product{HGEMM_F32, 512, 512, 64, 0x1p-130f, 1, 1};
    EXPECT_TRUE(same(product.run(handle), std::vector<float>(512 * 512, 0x1p-124f)));
}

INSTANTIATE_TEST_SUITE_P(, FloatEnvironment, testing::ValuesIn(environments), [](const auto& info) {
    std::string name = info.param.name;
    for (char& letter : name)
        letter = letter == ' ' ? '_' : letter;
    return name;
});

}  // namespace
}  // namespace hg
