// FloatEnvironment: while one lives, its thread computes in the default floating-point environment (round
// to nearest, subnormals and NaN kept, IEEE's half precision, no traps). Its destructor restores the
// previous one, exception flags included.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace hg {

#if defined(__x86_64__)
// Only the control word of SSE and AVX: a hundredth of the time of fesetenv(), which also sets that of the
// x87 unit. Nothing here uses x87.
class FloatEnvironment {
public:
    FloatEnvironment() : before_(_mm_getcsr())
    {
        if ((before_ & ~exception_flags) != all_masked)
            _mm_setcsr(all_masked);
    }
    ~FloatEnvironment()
    {
        if (_mm_getcsr() != before_)
            _mm_setcsr(before_);
    }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
    static constexpr unsigned exception_flags = 0x3f, all_masked = 0x1f80;
    const unsigned before_;
};
#else
#if defined(__aarch64__) && defined(__clang__)
inline auto control_register() { return __builtin_arm_rsr64("fpcr"); }
inline void set_control_register(decltype(control_register()) bits) { __builtin_arm_wsr64("fpcr", bits); }
#elif defined(__aarch64__)
inline auto control_register() { return __builtin_aarch64_get_fpcr(); }
inline void set_control_register(decltype(control_register()) bits) { __builtin_aarch64_set_fpcr(bits); }
#else
inline int control_register() { return 0; }
inline void set_control_register(int) {}
#endif

// FE_DFL_ENV leaves bits of the control register that the C library does not know, among them those for
// alternative half precision, which has no infinity and no NaN, and for a NaN that loses its bits.
class FloatEnvironment {
public:
    FloatEnvironment() : control_(control_register())
    {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
        if (control_ != 0)
            set_control_register(0);
    }
    ~FloatEnvironment()
    {
        std::fesetenv(&before_);
        if (control_ != 0)
            set_control_register(control_);
    }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
    const decltype(control_register()) control_;
    std::fenv_t before_;
};
#endif

}  // namespace hg
