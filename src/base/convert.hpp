// Conversions between fp32 and the half-precision types, in integer arithmetic that compilers vectorise.
// to_float() and from_float() use F16C where the CPU has it, which gives the same bits. Widening is exact.
// Narrowing rounds to nearest even, overflows to infinity, and keeps subnormals, the sign of zero and NaN.
// A NaN converted from or to fp16 keeps the leading bits of its payload and becomes quiet.
#pragma once

#include "arch/common/types.hpp"

#include <bit>

namespace hg {

// Without branches, since a compiler does not vectorise a floating-point operation behind one.
inline uint32_t select(bool condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - static_cast<uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
}

inline float half_to_float(uint16_t half)
{
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
    const uint32_t normal = magnitude + (112u << 23);  // 112: distance of the exponent biases
    const uint32_t quiet = select(magnitude > (31u << 23), 1u << 22, 0u);
    const uint32_t infinite = (magnitude + (224u << 23)) | quiet;
    // For a subnormal this adds the implicit one of normal numbers, and a subtraction removes it again.
    const float subnormal = std::bit_cast<float>(magnitude + (113u << 23)) - 0x1p-14f;
    const uint32_t small = select(magnitude < (1u << 23), std::bit_cast<uint32_t>(subnormal), normal);
    return std::bit_cast<float>(select(magnitude >= (31u << 23), infinite, small) | sign);
}

inline uint16_t float_to_half(float value)
{
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    // What rounds above the largest half carries into the exponent and becomes infinity by itself.
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Adding 0.5 leaves a unit of 2^-24, the smallest half, in the last place.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - (126u << 23);
    const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
    const uint32_t finite = select(magnitude < (113u << 23), subnormal, normal);
    const uint32_t special = select(magnitude > (255u << 23), nan, 0x7c00u);
    return static_cast<uint16_t>(select(magnitude >= (143u << 23), special, finite) | sign);  // 143: 2^16
}

inline float bfloat16_to_float(uint16_t bfloat16)
{
    return std::bit_cast<float>(static_cast<uint32_t>(bfloat16) << 16);
}

inline uint16_t float_to_bfloat16(float value)
{
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const bool nan = (bits & 0x7fffffffu) > (255u << 23);
    return static_cast<uint16_t>((nan ? bits | 0x400000u : rounded) >> 16);
}

// Reads `count` elements of `type`, `stride` elements apart, from element `offset` of `source` on.
void to_float(Type type, const void* source, int64_t offset, int64_t stride, int64_t count, float* values);

// Writes `count` elements of `type`, `stride` elements apart, from element `offset` of `target` on.
void from_float(Type type, const float* values, int64_t count, void* target, int64_t offset,
                int64_t stride = 1);

}  // namespace hg
