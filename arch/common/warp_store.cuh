// From the mma fragments of a warp to the output, for everything that a plain store cannot do. The
// accumulators leave few registers: each thread finishes one vector at a time and keeps nothing for the
// next row.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/warp_tile.cuh"

namespace hg {

// Columns of a warp's chunk of shared memory.
constexpr int chunk_columns(int warp_n) { return warp_n < 64 ? warp_n : 64; }

// Loads elements index ... index + count - 1; the rest of `v` keeps its values.
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

// Finishes columns j ... j + 7 of row i, of which `count` exist.
__device__ inline void finish_vector(float (&v)[8], const OutputParams& p, const Scalars& s,
                                     const OutputBases& bases, int64_t i, int64_t j, int count)
{
    float other[8] = {};
    if (bases.c)
        load_elements(other, bases.c, i * p.ldc + j, p.type_c, count);
#pragma unroll
    for (int e = 0; e < 8; ++e)
        v[e] = bases.c ? fmaf(s.beta, other[e], __fmul_rn(s.alpha, v[e])) : __fmul_rn(s.alpha, v[e]);
    if (p.bias_along == BiasAlong::Columns) {
        load_elements(other, bases.bias, j, p.type_bias, count);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = __fadd_rn(v[e], other[e]);
    } else if (p.bias_along == BiasAlong::Rows) {
        const float b = load_element(bases.bias, i, p.type_bias);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = __fadd_rn(v[e], b);
    }
    if (bases.aux)
        store_elements(v, bases.aux, i * p.ldaux + j, p.type_d, count);
    if (p.activation != Activation::None)
        transform(v, [&](float x) { return activate(x, p.activation); });
    store_elements(v, bases.d, i * p.ldd + j, p.type_d, count);
}

// Stores a chunk whose first element is (row, column) of the output, `columns` of its columns. Called by a
// whole warp.
template <int Cols>
__device__ inline void store_chunk_rows(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                        const float* chunk, int64_t row, int64_t column, int columns,
                                        int lane)
{
    constexpr int vectors = Cols / epilogue_vector;
#pragma unroll 1
    for (int index = lane; index < epilogue_rows * vectors; index += 32) {
        const int r = index / vectors, vector = index % vectors;
        const int64_t i = row + r, j = column + vector * epilogue_vector;
        if (i >= p.m || j >= p.n || vector * epilogue_vector >= columns)
            continue;
        float v[8];
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                *reinterpret_cast<const float4*>(chunk + 4 * Chunk<Cols>::unit(r, 2 * vector + half));
        finish_vector(v, p, s, bases, i, j, static_cast<int>(min(p.n - j, int64_t{epilogue_vector})));
    }
}

// Stores a warp's tile whose first element is (row, column) of the output, 16 rows at a time through its
// chunk.
template <int WM, int WN>
__device__ inline void store_warp_tile(const OutputParams& p, const Scalars& s,
                                       const WarpAccumulator<WM, WN>& acc, float* chunk, int32_t batch,
                                       int64_t row, int64_t column, int lane)
{
    constexpr int columns = chunk_columns(WN);
    const OutputBases bases(p, s, batch);
#pragma unroll
    for (int i = 0; i < WM / epilogue_rows; ++i)
#pragma unroll
        for (int first = 0; first < WN; first += columns) {
#pragma unroll
            for (int j = 0; j < columns; j += 8)
                Chunk<columns>::put(chunk, j, acc.v[i][(first + j) / 8], lane);
            __syncwarp();
            store_chunk_rows<columns>(p, s, bases, chunk, row + i * epilogue_rows, column + first, columns,
                                      lane);
            __syncwarp();
        }
}

}  // namespace hg
