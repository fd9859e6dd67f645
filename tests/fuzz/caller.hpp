// What a caller may have set before a call, and must find again behind it: how its own floating-point
// numbers are rounded, and whether the smallest are taken as 0.
#pragma once

#include "input.hpp"
#include "report.hpp"

#include <cfenv>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace hg::fuzz {

class CallerEnvironment {
public:
    explicit CallerEnvironment(Input& input)
    {
        const int kind = input.byte();
        if (kind >= 224)
            set(kind % 4);
        set_ = control();
    }
    CallerEnvironment(const CallerEnvironment&) = delete;
    CallerEnvironment& operator=(const CallerEnvironment&) = delete;
    ~CallerEnvironment() { std::fesetenv(FE_DFL_ENV); }

    // Is it as it was? What was set stays set until the end.
    void check() const
    {
        if (control() != set_)
            wrong("the call changed the caller's floating-point environment");
    }

private:
    static void set(int kind)
    {
        std::fesetround(kind % 2 == 0 ? FE_UPWARD : FE_TOWARDZERO);
#if defined(__SSE__)
        if (kind >= 2)
            _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
    }

    static unsigned control()
    {
#if defined(__SSE__)
        return _mm_getcsr() & ~0x3fu;  // but the flags of what happened
#else
        return static_cast<unsigned>(std::fegetround());
#endif
    }

    unsigned set_;
};

}  // namespace hg::fuzz
