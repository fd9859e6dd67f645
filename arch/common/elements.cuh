// Elements of matrices: where those of a problem begin, their types, loads and stores of one element and of
// whole vectors of eight, and the activations.
#pragma once

#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/math.cuh"
#include "arch/common/types.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>

namespace hg {

constexpr int epilogue_vector = 8;

// Where problem z begins: `stride` bytes behind the one before, or as far behind array[z] as ptr is behind
// address 0.
template <typename T>
__device__ inline T* problem_base(T* ptr, T* const* array, int32_t z, int64_t stride)
{
    const int64_t place = array ? reinterpret_cast<int64_t>(array[z]) : z * stride;
    return reinterpret_cast<T*>(reinterpret_cast<int64_t>(ptr) + place);
}

__device__ inline int64_t device_bytes_of(Type t) { return t == Type::F32 ? 4 : 2; }

__device__ inline float to_float(uint16_t bits, Type type)
{
    return type == Type::F16 ? __half2float(__ushort_as_half(bits))
                             : __bfloat162float(__ushort_as_bfloat16(bits));
}

__device__ inline uint16_t to_bits(float value, Type type)
{
    return type == Type::F16 ? __half_as_ushort(__float2half_rn(value))
                             : __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

// Two neighbouring elements, the first in the low half.
__device__ inline uint32_t to_bits2(float low, float high, Type type)
{
    const __half2 h = __floats2half2_rn(low, high);
    const __nv_bfloat162 b = __floats2bfloat162_rn(low, high);
    return type == Type::F16 ? *reinterpret_cast<const uint32_t*>(&h)
                             : *reinterpret_cast<const uint32_t*>(&b);
}

__device__ inline float load_element(const void* base, int64_t index, Type type)
{
    return type == Type::F32 ? static_cast<const float*>(base)[index]
                             : to_float(static_cast<const uint16_t*>(base)[index], type);
}

__device__ inline void store_element(float v, void* base, int64_t index, Type type)
{
    if (type == Type::F32)
        static_cast<float*>(base)[index] = v;
    else
        static_cast<uint16_t*>(base)[index] = to_bits(v, type);
}

template <Type T>
__device__ inline void to_floats(float (&v)[8], const uint4& bits)
{
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 8; ++i)
        v[i] = to_float(static_cast<uint16_t>(words[i / 2] >> i % 2 * 16), T);
}

// Eight 16-bit elements, most often of type T. The type is tested once, so that the conversions overlap.
template <Type T>
__device__ inline void to_floats(float (&v)[8], const uint4& bits, Type type)
{
    if (type == T) [[likely]]
        to_floats<T>(v, bits);
    else
        to_floats<T == Type::F16 ? Type::BF16 : Type::F16>(v, bits);
}

// Eight elements, aligned as a vector.
template <Type T>
__device__ inline void load_vector(float (&v)[8], const void* from, Type type)
{
    if (type == Type::F32) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            reinterpret_cast<float4*>(v)[i] = static_cast<const float4*>(from)[i];
    } else {
        to_floats<T>(v, *static_cast<const uint4*>(from), type);
    }
}

__device__ inline uint4 to_bits8(const float (&v)[8], Type type)
{
    return make_uint4(to_bits2(v[0], v[1], type), to_bits2(v[2], v[3], type), to_bits2(v[4], v[5], type),
                      to_bits2(v[6], v[7], type));
}

template <Type T>
__device__ inline void store_vector(const float (&v)[8], void* to, Type type)
{
    if (type == T) [[likely]] {
        ptx::store_global_v4(static_cast<uint4*>(to), to_bits8(v, T));
    } else if (type != Type::F32) {
        ptx::store_global_v4(static_cast<uint4*>(to), to_bits8(v, type));
    } else {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            ptx::store_global_v4(static_cast<uint4*>(to) + i,
                                 make_uint4(__float_as_uint(v[4 * i]), __float_as_uint(v[4 * i + 1]),
                                            __float_as_uint(v[4 * i + 2]), __float_as_uint(v[4 * i + 3])));
    }
}

// A factor for activations whose other factor tends to 0: minus infinity times 0 would be NaN.
__device__ inline float finite_below(float x) { return fmaxf(x, -FLT_MAX); }

// x / (1 + 2^y) in five instructions, since most epilogues overlap with no other work. Rounding y makes an
// error in 2^y that grows with |y|, but the quotient then tends to 0. NaN in x reaches the result through
// y.
__device__ inline float logistic_product(float x, float y)
{
    return finite_below(x) * ptx::rcp_approx_ftz(1.0f + ptx::ex2_approx_ftz(y));
}

constexpr float log2_e = 1.4426950409f;

__device__ inline float relu(float x) { return x <= 0.0f ? 0.0f : x; }  // NaN stays NaN
__device__ inline float silu(float x) { return logistic_product(x, -log2_e * x); }

// Without cancellation at x < 0: 0.5 * (1 + tanh(u)) is a logistic function, 0.5 * (1 + erf(u)) is erfc.
__device__ inline float gelu_tanh(float x)
{
    constexpr float twice_sqrt_2_by_pi = 1.5957691216f, linear = -log2_e * twice_sqrt_2_by_pi;
    return logistic_product(x, x * fmaf(0.044715f * linear, x * x, linear));
}

__device__ inline float gelu_erf(float x)
{
    constexpr float sqrt_half = 0.7071067812f;
    return 0.5f * finite_below(x) * erfcf(-sqrt_half * x);
}

template <int Count, typename Function>
__device__ inline void transform(float (&v)[Count], Function function)
{
#pragma unroll
    for (float& x : v)
        x = function(x);
}

__device__ inline float activate(float x, Activation activation)
{
    switch (activation) {
    case Activation::Relu: return relu(x);
    case Activation::GeluTanh: return gelu_tanh(x);
    case Activation::GeluErf: return gelu_erf(x);
    case Activation::Silu: return silu(x);
    default: return x;
    }
}

// A gate, and what it gates. NaN stays NaN.
template <typename Function>
__device__ inline float gated(float gate, float other, const Gate& g, Function activation)
{
    gate = ptx::min_nan(gate, g.limit);
    other = ptx::max_nan(ptx::min_nan(other, g.limit), -g.limit);
    return __fmul_rn(activation(gate), __fadd_rn(other, g.offset));
}

// Calls use() with the activation but GeluErf as a function.
template <typename Use>
__device__ inline void with_short_gate_function(Activation activation, float slope, Use use)
{
    if (activation == Activation::Silu)
        use([=](float x) { return logistic_product(x, -log2_e * slope * x); });
    else if (activation == Activation::GeluTanh)
        use([](float x) { return gelu_tanh(x); });
    else if (activation == Activation::Relu)
        use([](float x) { return relu(x); });
    else
        use([](float x) { return x; });
}

template <typename Use>
__device__ inline void with_gate_function(Activation activation, float slope, Use use)
{
    if (activation == Activation::GeluErf)
        use([](float x) { return gelu_erf(x); });
    else
        with_short_gate_function(activation, slope, use);
}

// Loads up to eight elements one by one, as many as exist; the others are zeros.
__device__ inline uint4 gather_vector(const uint16_t* from, int64_t stride, int64_t count)
{
    uint64_t halves[2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (4 * half + i < count)
                halves[half] |= uint64_t{from[(4 * half + i) * stride]} << 16 * i;
    return make_uint4(static_cast<uint32_t>(halves[0]), static_cast<uint32_t>(halves[0] >> 32),
                      static_cast<uint32_t>(halves[1]), static_cast<uint32_t>(halves[1] >> 32));
}

// The eight elements at address `from`, of which those outside of begin ... end - 1 are not read: zeros.
__device__ inline uint4 gather_within(uintptr_t from, uintptr_t begin, uintptr_t end)
{
    uint64_t halves[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (const uintptr_t at = from + 2 * i; at >= begin && at < end)
            halves[i / 4] |= uint64_t{*reinterpret_cast<const uint16_t*>(at)} << 16 * (i % 4);
    return make_uint4(static_cast<uint32_t>(halves[0]), static_cast<uint32_t>(halves[0] >> 32),
                      static_cast<uint32_t>(halves[1]), static_cast<uint32_t>(halves[1] >> 32));
}

// vectors[place] = vector, in registers: an index that the compiler does not know would move all vectors to
// local memory.
template <int Count>
__device__ inline void put_vector(uint4 (&vectors)[Count], int place, const uint4& vector)
{
#pragma unroll
    for (int i = 0; i < Count; ++i)
        if (i == place)
            vectors[i] = vector;
}

// The 16 bytes that begin at byte `offset`, an even number, of the 32 bytes `low` and `high`.
__device__ inline uint4 extract_vector(const uint4& low, const uint4& high, uint32_t offset)
{
    const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    uint32_t pairs[6], singles[5];
#pragma unroll
    for (int i = 0; i < 6; ++i)
        pairs[i] = offset & 8 ? words[i + 2] : words[i];
#pragma unroll
    for (int i = 0; i < 5; ++i)
        singles[i] = offset & 4 ? pairs[i + 1] : pairs[i];
    const uint32_t bits = offset % 4 * 8;
    return make_uint4(
        __funnelshift_r(singles[0], singles[1], bits), __funnelshift_r(singles[1], singles[2], bits),
        __funnelshift_r(singles[2], singles[3], bits), __funnelshift_r(singles[3], singles[4], bits));
}

// The first `count` of eight elements, zeros behind them.
__device__ inline uint4 keep_elements(const uint4& v, int count)
{
    uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
        words[i] &= count > 2 * i + 1 ? 0xffffffff : count > 2 * i ? 0xffff : 0;
    return make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace hg
