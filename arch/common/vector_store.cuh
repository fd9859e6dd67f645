// From a tile of floats in shared memory to an output that takes alpha and a bias and nothing else, and
// whose rows are whole aligned vectors of eight: see is_vector_output().
#pragma once

#include "arch/common/epilogue.cuh"

namespace hg {

// Elements index ... index + 3.
__device__ inline void load_four(float (&v)[4], const void* base, int64_t index, Type type)
{
    const char* first = static_cast<const char*>(base) + index * device_bytes_of(type);
    if (type != Type::F32 && reinterpret_cast<uintptr_t>(first) % 8 == 0) {
        const uint2 bits = *reinterpret_cast<const uint2*>(first);
        v[0] = to_float(static_cast<uint16_t>(bits.x), type), v[1] = to_float(bits.x >> 16, type);
        v[2] = to_float(static_cast<uint16_t>(bits.y), type), v[3] = to_float(bits.y >> 16, type);
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
        v[e] = load_element(base, index + e, type);
}

// Eight columns of the output, to which a thread keeps. What is known not to have a bias does not branch,
// so that the rows of an unrolled loop overlap.
template <bool Biased>
struct VectorColumn {
    char* d;  // in row 0
    int64_t row_bytes;
    const void* bias;  // null: none
    int64_t bias_index;
    float alpha;
    BiasAlong along;
    Type type, type_bias;

    // Columns j ... j + 7 of problem z.
    __device__ VectorColumn(const OutputParams& p, float alpha, int64_t j, int32_t z)
        : d(static_cast<char*>(p.d) + (z * p.stride_d + j) * device_bytes_of(p.type_d)),
          row_bytes(p.ldd * device_bytes_of(p.type_d)), bias(p.bias), bias_index(z * p.stride_bias),
          alpha(alpha), along(p.bias_along), type(p.type_d), type_bias(p.type_bias)
    {
        if (along == BiasAlong::Columns)
            bias_index += j;
    }

    // `sums` is a vector of floats in shared memory, of row i.
    __device__ void store(int64_t i, const float* sums) const
    {
        float v[2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            *reinterpret_cast<float4*>(v[half]) = reinterpret_cast<const float4*>(sums)[half];
            finish(v[half], i, half);
        }
        char* const to = d + i * row_bytes;
        if (type == Type::F32) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                reinterpret_cast<float4*>(to)[half] = *reinterpret_cast<const float4*>(v[half]);
        } else {
            *reinterpret_cast<uint4*>(to) =
                make_uint4(to_bits2(v[0][0], v[0][1], type), to_bits2(v[0][2], v[0][3], type),
                           to_bits2(v[1][0], v[1][1], type), to_bits2(v[1][2], v[1][3], type));
        }
    }

private:
    __device__ void finish(float (&v)[4], int64_t i, int half) const
    {
#pragma unroll
        for (float& x : v)
            x = __fmul_rn(alpha, x);
        if (Biased && along == BiasAlong::Rows) {
            const float b = load_element(bias, bias_index + i, type_bias);
#pragma unroll
            for (float& x : v)
                x = __fadd_rn(x, b);
        } else if (Biased && along == BiasAlong::Columns) {
            float b[4];
            load_four(b, bias, bias_index + 4 * half, type_bias);
#pragma unroll
            for (int e = 0; e < 4; ++e)
                v[e] = __fadd_rn(v[e], b[e]);
        }
    }
};

// As store_chunk(), of problem z.
template <int Cols>
__device__ inline void store_chunk_vectors(const OutputParams& p, float alpha, int32_t z,
                                           const float* chunk, int64_t row, int64_t column, int columns,
                                           int lane)
{
    constexpr int vectors = Cols / epilogue_vector, rows_at_once = 32 / vectors;
    const int vector = lane % vectors, first = lane / vectors;
    const int64_t j = column + vector * epilogue_vector;
    if (vector * epilogue_vector >= columns || j >= p.n)
        return;
    const VectorColumn<true> out(p, alpha, j, z);
    const auto rows = static_cast<int>(min(int64_t{epilogue_rows}, p.m - row));
#pragma unroll 1
    for (int r = 0; r < epilogue_rows; r += rows_at_once) {
        if (r + first >= rows)
            continue;
        out.store(row + r + first, chunk + 4 * Chunk<Cols>::unit(r + first, 2 * vector));
    }
}

}  // namespace hg
