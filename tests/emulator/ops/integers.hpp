// What the files of integer arithmetic share: sums that wrap or saturate, and handlers by type.
#pragma once

#include "ops/lanes.hpp"
#include "ops/wide.hpp"

#include <limits>

namespace emu {

template <class T>
using Wrap = std::make_unsigned_t<T>;

template <class T>
T saturate(Int128 value)
{
    using Limits = std::numeric_limits<T>;
    return value > Limits::max()   ? Limits::max()
           : value < Limits::min() ? Limits::min()
                                   : static_cast<T>(value);
}

struct Add {
    template <class T>
    static T of(T a, T b)
    {
        return static_cast<T>(Wrap<T>(a) + Wrap<T>(b));
    }
};
struct Sub {
    template <class T>
    static T of(T a, T b)
    {
        return static_cast<T>(Wrap<T>(a) - Wrap<T>(b));
    }
};

// Two 16-bit halves in a register.
template <class F, class T>
struct Halves {
    static uint32_t of(uint32_t a, uint32_t b)
    {
        const auto low = F::of(static_cast<T>(a), static_cast<T>(b));
        const auto high = F::of(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
        return static_cast<uint16_t>(low) | uint32_t{static_cast<uint16_t>(high)} << 16;
    }
};

template <class F>
Handler binary_of(const ptx::Type& t)
{
    const bool is_signed = t.kind == ptx::Kind::Signed;
    if (t.packed == 2)
        return is_signed ? binary<Halves<F, int16_t>, uint32_t> : binary<Halves<F, uint16_t>, uint32_t>;
    switch (t.bits) {
    case 16: return is_signed ? binary<F, int16_t> : binary<F, uint16_t>;
    case 32: return is_signed ? binary<F, int32_t> : binary<F, uint32_t>;
    case 64: return is_signed ? binary<F, int64_t> : binary<F, uint64_t>;
    default: return nullptr;
    }
}

}  // namespace emu
