// From the mma fragments of a warp to the output. Plain outputs in aligned vectors are stored from
// registers. All others go through a chunk of shared memory: the accumulators leave few registers, so that
// each thread finishes one vector at a time and keeps nothing for the next row.
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

// Four lanes hold the rows of a 4 x 4 matrix of words; afterwards they hold its columns.
__device__ inline void transpose_quad(uint32_t (&w)[4], int lane)
{
    const bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffff, odd ? w[i] : w[i + 1], 1);
        w[i] = odd ? other : w[i];
        w[i + 1] = odd ? w[i + 1] : other;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint32_t other = __shfl_xor_sync(0xffffffff, high ? w[i] : w[i + 2], 2);
        w[i] = high ? other : w[i];
        w[i + 2] = high ? w[i + 2] : other;
    }
}

// Can store_from_registers() store the output of operands of type T? D is alpha * A * B, of floats or of T,
// in rows of whole aligned vectors.
template <Type T>
__device__ inline bool is_plain_output(const OutputParams& p, const OutputBases& bases)
{
    return bases.vectors && p.n % 8 == 0 && !bases.c && !bases.aux && p.bias_along == BiasAlong::None &&
           p.activation == Activation::None && (p.type_d == T || p.type_d == Type::F32);
}

// Where a lane stores: `to` is its element of the warp's first fragment, the bounds count from there.
struct LaneOutput {
    char* to;
    int64_t row_bytes;
    int rows, columns;

    __device__ LaneOutput(const OutputParams& p, char* d, int64_t i, int64_t j, int bytes)
        : to(d + (i * p.ldd + j) * bytes), row_bytes(p.ldd * bytes),
          rows(static_cast<int>(min(p.m - i, int64_t{INT32_MAX}))),
          columns(static_cast<int>(min(p.n - j, int64_t{INT32_MAX})))
    {
    }
    __device__ bool has(int row, int column) const { return row < rows && column < columns; }
};

// Stores 16 rows of fragments of 16-bit results. Each lane stores whole vectors, which it collects from the
// four lanes that hold a row: of four blocks of eight columns it gets one, of two one in one of two rows.
template <Type T, int Blocks>
__device__ inline void store_rows_16(const float (*fragments)[4], float alpha, const LaneOutput& out,
                                     int row, int lane)
{
    constexpr int at_once = Blocks % 4 == 0 ? 4 : 2, rows = 4 / at_once;
#pragma unroll
    for (int half = 0; half < 2; half += rows) {
        char* const to = out.to + (row + 8 * half) * out.row_bytes;
#pragma unroll
        for (int first = 0; first < Blocks; first += at_once) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* const v = fragments[first + i % at_once] + 2 * (half + i / at_once);
                words[i] = to_bits2(__fmul_rn(alpha, v[0]), __fmul_rn(alpha, v[1]), T);
            }
            transpose_quad(words, lane);
            if (out.has(row + 8 * half, 8 * first))
                ptx::store_global_v4(reinterpret_cast<uint4*>(to + 16 * first),
                                     make_uint4(words[0], words[1], words[2], words[3]));
        }
    }
}

// The same for floats, of which four lanes fill a sector of 32 bytes in a row.
template <int Blocks>
__device__ inline void store_rows_32(const float (*fragments)[4], float alpha, const LaneOutput& out,
                                     int row)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        char* const to = out.to + (row + 8 * half) * out.row_bytes;
#pragma unroll
        for (int block = 0; block < Blocks; ++block) {
            const float* const v = fragments[block] + 2 * half;
            if (out.has(row + 8 * half, 8 * block))
                *reinterpret_cast<float2*>(to + 32 * block) =
                    make_float2(__fmul_rn(alpha, v[0]), __fmul_rn(alpha, v[1]));
        }
    }
}

template <Type T, int WM, int WN>
__device__ inline void store_from_registers(const OutputParams& p, float alpha, char* d,
                                            const WarpAccumulator<WM, WN>& acc, int64_t row, int64_t column,
                                            int lane)
{
    const int quad = lane / 4, in_quad = lane % 4;
    if (p.type_d == Type::F32) {
        const LaneOutput out(p, d, row + quad, column + 2 * in_quad, 4);
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            store_rows_32<WN / 8>(acc.v[i], alpha, out, 16 * i);
    } else {
        constexpr int at_once = WN % 32 == 0 ? 4 : 2;
        const LaneOutput out(p, d, row + quad + in_quad / at_once * 8, column + in_quad % at_once * 8, 2);
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            store_rows_16<T, WN / 8>(acc.v[i], alpha, out, 16 * i, lane);
    }
}

template <int Cols>
__device__ inline void put_chunk(float* chunk, const float (*fragments)[4], int lane)
{
#pragma unroll
    for (int j = 0; j < Cols; j += 8)
        Chunk<Cols>::put(chunk, j, fragments[j / 8], lane);
}

// Stores a warp's tile whose first element is (row, column) of the output, if need be 16 rows at a time
// through its chunk of `columns` columns. FromRegisters: plain outputs need no chunk.
template <Type T, int WM, int WN, int columns = chunk_columns(WN), bool FromRegisters = true>
__device__ inline void store_warp_tile(const OutputParams& p, const Scalars& s,
                                       const WarpAccumulator<WM, WN>& acc, float* chunk, int32_t batch,
                                       int64_t row, int64_t column, int lane)
{
    if constexpr (FromRegisters) {
        const OutputBases bases(p, s, batch);
        if (is_plain_output<T>(p, bases)) {
            store_from_registers<T>(p, s.alpha, bases.d, acc, row, column, lane);
            return;
        }
    }
    // Only what must know its accumulators by constants is unrolled: nvcc takes long for the rest.
    constexpr int across = WN / columns, chunks = WM / epilogue_rows * across;
#pragma unroll 1
    for (int current = 0; current < chunks; ++current) {
#pragma unroll
        for (int i = 0; i < chunks; ++i)
            if (i == current)
                put_chunk<columns>(chunk, acc.v[i / across] + i % across * (columns / 8), lane);
        __syncwarp();
        // Found anew each time: there are no registers to keep them.
        const OutputBases bases(p, s, static_cast<int32_t>(ptx::mov_b32(static_cast<uint32_t>(batch))));
        store_chunk_rows<columns>(p, s, bases, chunk, row + current / across * epilogue_rows,
                                  column + current % across * columns, columns, lane);
        __syncwarp();
    }
}

}  // namespace hg
