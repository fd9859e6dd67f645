// From fp32 accumulators to the output, for everything that a plain tile store cannot do: any alignment,
// any type, C, bias, activation, aux, ragged edges.
//
// A warp lays 16 rows of its accumulators into a chunk of shared memory, then walks the chunk row by row,
// eight columns a lane. All of it is private to the warp: __syncwarp() is the only synchronisation.
#pragma once

#include "arch/common/params.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace hg {

constexpr int epilogue_rows = 16, epilogue_vector = 8;

struct Scalars {
    float alpha, beta;
};

__device__ inline Scalars load_scalars(const OutputParams& p)
{
    return {p.alpha_device ? *p.alpha_device : p.alpha, p.beta_device ? *p.beta_device : p.beta};
}

template <typename T>
__device__ inline T* problem_base(T* ptr, T* const* array, int64_t element_offset, int64_t element_bytes,
                                  int32_t z)
{
    return array ? array[z]
                 : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(ptr) + element_offset * element_bytes);
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

// Two neighbours, the first in the low half.
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

// Elements index ... index + count - 1 of a row; the rest of `v` is left alone.
__device__ inline void load_elements(float (&v)[8], const void* base, int64_t index, Type type, int count)
{
    const void* first = static_cast<const char*>(base) + index * device_bytes_of(type);
    if (count == 8 && reinterpret_cast<uintptr_t>(first) % 16 == 0) {
        if (type == Type::F32) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                reinterpret_cast<float4*>(v)[i] = static_cast<const float4*>(first)[i];
        } else {
            const uint4 bits = *static_cast<const uint4*>(first);
            const auto* half_words = reinterpret_cast<const uint16_t*>(&bits);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                v[i] = to_float(half_words[i], type);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (i < count)
            v[i] = load_element(base, index + i, type);
}

__device__ inline void store_elements(const float (&v)[8], void* base, int64_t index, Type type, int count)
{
    void* first = static_cast<char*>(base) + index * device_bytes_of(type);
    if (count == 8 && reinterpret_cast<uintptr_t>(first) % 16 == 0) {
        if (type == Type::F32) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                static_cast<float4*>(first)[i] =
                    make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
        } else {
            *static_cast<uint4*>(first) =
                make_uint4(to_bits2(v[0], v[1], type), to_bits2(v[2], v[3], type),
                           to_bits2(v[4], v[5], type), to_bits2(v[6], v[7], type));
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (i < count && type == Type::F32)
            static_cast<float*>(first)[i] = v[i];
        else if (i < count)
            static_cast<uint16_t*>(first)[i] = to_bits(v[i], type);
    }
}

// x / (1 + e^-y). Exact division would be a call.
__device__ inline float logistic_product(float x, float y) { return __fdividef(x, 1.0f + expf(-y)); }

// Without cancellation at x < 0: 0.5 * (1 + tanh(u)) is a logistic function, 0.5 * (1 + erf(u)) is erfc.
__device__ inline float activate(float x, Activation activation)
{
    constexpr float sqrt_half = 0.7071067812f, twice_sqrt_2_by_pi = 1.5957691216f;
    switch (activation) {
    case Activation::Relu: return x <= 0.0f ? 0.0f : x;  // NaN stays NaN
    case Activation::GeluTanh: return logistic_product(x, twice_sqrt_2_by_pi * (x + 0.044715f * x * x * x));
    case Activation::GeluErf: return 0.5f * x * erfcf(-sqrt_half * x);
    case Activation::Silu: return logistic_product(x, x);
    default: return x;
    }
}

// A chunk of 16 rows and Cols columns of floats. The 16-byte units of a row are permuted so that the
// fragment's writes (four rows at one column) meet no bank twice.
template <int Cols>
struct Chunk {
    static_assert(Cols == 32 || Cols == 64);
    static constexpr int floats = epilogue_rows * Cols;

    __device__ static int unit(int row, int unit) { return row * (Cols / 4) + (unit ^ (row % 4 * 2)); }

    // Accumulator fragment of mma and wgmma: two neighbours in each of the rows r and r + 8.
    __device__ static void put(float* chunk, int column, const float (&fragment)[4], int lane)
    {
        const int row = lane / 4, col = column + lane % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float* to = chunk + 4 * unit(row + 8 * half, col / 4) + col % 4;
            *reinterpret_cast<float2*>(to) = make_float2(fragment[2 * half], fragment[2 * half + 1]);
        }
    }

    __device__ static void get(float (&v)[8], const float* chunk, int row, int vector)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            reinterpret_cast<float4*>(v)[i] =
                *reinterpret_cast<const float4*>(chunk + 4 * unit(row, 2 * vector + i));
    }
};

// Where the output of problem z lies.
struct OutputBases {
    void* d;
    const void* c;
    const void* bias;
    void* aux;

    __device__ OutputBases(const OutputParams& p, const Scalars& s, int32_t z)
    {
        d = problem_base(p.d, p.d_array, z * p.stride_d, device_bytes_of(p.type_d), z);
        const bool reads_c = s.beta != 0.0f && (p.c || p.c_array);
        c = reads_c ? problem_base(p.c, p.c_array, z * p.stride_c, device_bytes_of(p.type_c), z) : nullptr;
        bias = static_cast<const char*>(p.bias) + z * p.stride_bias * device_bytes_of(p.type_bias);
        aux = p.aux ? static_cast<char*>(p.aux) + z * p.stride_aux * device_bytes_of(p.type_d) : nullptr;
    }
};

// Eight columns j ... of row i, of which `count` exist.
__device__ inline void finish_vector(float (&v)[8], const OutputParams& p, const Scalars& s,
                                     const OutputBases& bases, int64_t i, int64_t j, int count)
{
    float other[8] = {};
    if (bases.c)
        load_elements(other, bases.c, i * p.ldc + j, p.type_c, count);
#pragma unroll
    for (int e = 0; e < 8; ++e)
        v[e] = bases.c ? fmaf(s.beta, other[e], s.alpha * v[e]) : s.alpha * v[e];
    if (p.bias_along == BiasAlong::Columns) {
        load_elements(other, bases.bias, j, p.type_bias, count);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] += other[e];
    } else if (p.bias_along == BiasAlong::Rows) {
        const float b = load_element(bases.bias, i, p.type_bias);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] += b;
    }
    if (bases.aux)
        store_elements(v, bases.aux, i * p.ldaux + j, p.type_d, count);
    if (p.activation != Activation::None) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = activate(v[e], p.activation);
    }
    store_elements(v, bases.d, i * p.ldd + j, p.type_d, count);
}

// Write out a chunk whose first element is (row, column) of the output, `columns` of it. Whole warp.
template <int Cols>
__device__ inline void store_chunk(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                   const float* chunk, int64_t row, int64_t column, int columns, int lane)
{
    constexpr int vectors = Cols / epilogue_vector;
#pragma unroll 1
    for (int index = lane; index < epilogue_rows * vectors; index += 32) {
        const int r = index / vectors, vector = index % vectors;
        const int64_t i = row + r, j = column + vector * epilogue_vector;
        if (i >= p.m || j >= p.n || vector * epilogue_vector >= columns)
            continue;
        float v[8];
        Chunk<Cols>::get(v, chunk, r, vector);
        finish_vector(v, p, s, bases, i, j, static_cast<int>(min(p.n - j, int64_t{epilogue_vector})));
    }
}

}  // namespace hg
