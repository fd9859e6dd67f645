// FloatEnvironment: while one lives, its thread computes in the default floating-point environment (round
// to nearest, subnormals kept, no traps). Its destructor restores the previous one, exception flags
// included.
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
class FloatEnvironment {
public:
    FloatEnvironment()
    {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~FloatEnvironment() { std::fesetenv(&before_); }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
    std::fenv_t before_;
};
#endif

}  // namespace hg
