// Division by a number that is known before the launch: a multiplication instead of about thirty
// instructions. Also compiled on the host.
#pragma once

#include <cstdint>

namespace hg {

// value in 1 ... 2^30; n in 0 ... 2^31 - 1. The multiplier is 2^(31 + shift) / value, rounded up, and shift
// the least with 2^shift >= value: the error stays below one part in 2^31 (Granlund and Montgomery, 1994).
struct Divisor {
    int32_t value;
    uint32_t multiplier, shift;

    constexpr int32_t quotient(int32_t n) const
    {
        const uint64_t product = uint64_t{2 * static_cast<uint32_t>(n)} * multiplier;
        return static_cast<int32_t>(static_cast<uint32_t>(product >> 32) >> shift);
    }
};

constexpr Divisor divisor(int32_t value)
{
    uint32_t shift = 0;
    while (uint32_t{1} << shift < static_cast<uint32_t>(value))
        ++shift;
    const auto rounded_up = ((uint64_t{1} << (31 + shift)) + value - 1) / value;
    return {value, static_cast<uint32_t>(rounded_up), shift};
}

}  // namespace hg
