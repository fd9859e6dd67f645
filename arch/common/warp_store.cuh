// From the mma fragments of a warp to the output. Plain outputs in aligned vectors are stored from
// registers. All others go through a chunk of shared memory: the accumulators leave few registers, so that
// each thread finishes one vector at a time, or an element where vectors are not aligned.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/epilogue.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/types.hpp"
#include "arch/common/warp_tile.cuh"

namespace hg {

// Columns of a warp's chunk of shared memory.
constexpr int chunk_columns(int warp_n) { return warp_n < 64 ? warp_n : 64; }

// Applies the activation. Erf is long: its loop is not unrolled, the values take turns in v[0].
__device__ inline void activate_vector(float (&v)[8], Activation activation)
{
    if (activation == Activation::Relu) {
        transform(v, relu);
    } else if (activation == Activation::GeluTanh) {
        transform(v, gelu_tanh);
    } else if (activation == Activation::Silu) {
        transform(v, silu);
    } else if (activation == Activation::GeluErf) {
#pragma unroll 1
        for (int turn = 0; turn < 8; ++turn) {
            const float x = gelu_erf(v[0]);
#pragma unroll
            for (int e = 0; e < 7; ++e)
                v[e] = v[e + 1];
            v[7] = x;
        }
    }
}

// Adds the bias of columns j ... j + 7.
template <Type T>
__device__ inline void add_column_bias(float (&v)[8], const OutputParams& p, const OutputBases& bases,
                                       int64_t j)
{
    const char* const from = bases.bias + j * device_bytes_of(p.type_bias);
    float bias[8];
    if (OutputBases::address(from) % 16 == 0) {
        load_vector<T>(bias, from, p.type_bias);
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            bias[e] = load_element(from, e, p.type_bias);
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
        v[e] = __fadd_rn(v[e], bias[e]);
}

// Finishes columns j ... j + 7 of row i: whole aligned vectors of C, aux and D.
template <Type T>
__device__ inline void finish_vector(float (&v)[8], const OutputParams& p, const Scalars& s,
                                     const OutputBases& bases, int64_t i, int64_t j)
{
    if (bases.c) {
        float c[8];
        load_vector<T>(c, bases.c + (i * p.ldc + j) * device_bytes_of(p.type_c), p.type_c);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = fmaf(s.beta, c[e], __fmul_rn(s.alpha, v[e]));
    } else {
        transform(v, [&](float x) { return __fmul_rn(s.alpha, x); });
    }
    if (p.bias_along == BiasAlong::Columns) {
        add_column_bias<T>(v, p, bases, j);
    } else if (p.bias_along == BiasAlong::Rows) {
        const float bias = load_element(bases.bias, i, p.type_bias);
        transform(v, [&](float x) { return __fadd_rn(x, bias); });
    }
    if (bases.aux)
        store_vector<T>(v, bases.aux + (i * p.ldaux + j) * device_bytes_of(p.type_d), p.type_d);
    activate_vector(v, p.activation);
    store_vector<T>(v, bases.d + (i * p.ldd + j) * device_bytes_of(p.type_d), p.type_d);
}

// Is D = alpha * A * B?
__device__ inline bool is_plain_output(const OutputParams& p, const OutputBases& bases)
{
    return !bases.c && !bases.aux && p.bias_along == BiasAlong::None && p.activation == Activation::None;
}

// Where a lane is in a chunk that the warp stores element by element: neighbouring lanes store neighbours,
// in rows `row`, row + step, ... and columns `column`, column + lanes, ...
template <int Cols>
struct ChunkElements {
    static constexpr int lanes = Cols < 32 ? Cols : 32, step = 32 / lanes, across = Cols / lanes;
    int row, column;

    __device__ explicit ChunkElements(int lane) : row(lane / lanes), column(lane % lanes) {}
    __device__ static int index(int row, int column)
    {
        return 4 * Chunk<Cols>::unit(row, column / 4) + column % 4;
    }
};

// The part of the output that a chunk covers: `columns` columns of `rows` rows from (row, column) on.
struct ChunkPlace {
    int64_t row, column;
    int rows, columns;

    __device__ ChunkPlace(const OutputParams& p, int64_t row, int64_t column, int columns)
        : row(row), column(column), rows(static_cast<int>(min(p.m - row, int64_t{epilogue_rows}))),
          columns(static_cast<int>(min(p.n - column, int64_t{columns})))
    {
    }
};

// Stores alpha times the elements of a chunk to D, which begins at `d`. A lane reads its elements of two
// rows before it stores any, so that the latencies overlap; with more rows kernels of sm120 spill.
template <int Cols, typename Element, typename Convert>
__device__ inline void store_plain_elements(const OutputParams& p, float alpha, char* d, const float* chunk,
                                            const ChunkPlace& place, int lane, Convert convert)
{
    using Elements = ChunkElements<Cols>;
    constexpr int across = Elements::across, at_once = 2, step = Elements::step;
    const Elements at(lane);
    auto* to = reinterpret_cast<Element*>(d) + (place.row + at.row) * p.ldd + place.column + at.column;
#pragma unroll 1
    for (int first = at.row; first < place.rows; first += at_once * step) {
        float v[at_once][across];
#pragma unroll
        for (int i = 0; i < at_once; ++i)
#pragma unroll
            for (int j = 0; j < across; ++j)
                v[i][j] = chunk[Elements::index(first + i * step, at.column + j * at.lanes)];
#pragma unroll
        for (int i = 0; i < at_once; ++i, to += step * p.ldd)
#pragma unroll
            for (int j = 0; j < across; ++j)
                if (first + i * step < place.rows && at.column + j * at.lanes < place.columns)
                    to[j * at.lanes] = convert(__fmul_rn(alpha, v[i][j]));
    }
}

template <int Cols>
__device__ inline void store_plain_chunk(const OutputParams& p, float alpha, char* d, const float* chunk,
                                         const ChunkPlace& place, int lane)
{
    if (p.type_d == Type::F32)
        store_plain_elements<Cols, float>(p, alpha, d, chunk, place, lane, [](float v) { return v; });
    else
        store_plain_elements<Cols, uint16_t>(p, alpha, d, chunk, place, lane,
                                             [&](float v) { return to_bits(v, p.type_d); });
}

// Stores a chunk, whatever the output. Called by a whole warp.
template <Type T, int Cols>
__device__ inline void store_chunk_rows(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                        float* chunk, const ChunkPlace& place, int lane)
{
    if (!bases.vectors || place.columns % epilogue_vector != 0) {
        if (is_plain_output(p, bases)) {
            store_plain_chunk<Cols>(p, s.alpha, bases.d, chunk, place, lane);
            return;
        }
        using Elements = ChunkElements<Cols>;
        const Elements at(lane);
#pragma unroll 1
        for (int r = at.row; r < place.rows; r += at.step)
#pragma unroll 1
            for (int c = at.column; c < place.columns; c += at.lanes)
                finish_element(p, s, bases, place.row + r, place.column + c, chunk[at.index(r, c)]);
        return;
    }
    constexpr int vectors = Cols / epilogue_vector, step = 32 / vectors;
    const int vector = lane % vectors;
    if (vector * epilogue_vector >= place.columns)
        return;
    const int64_t j = place.column + vector * epilogue_vector;
#pragma unroll 1
    for (int r = lane / vectors; r < place.rows; r += step) {
        float v[8];
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                *reinterpret_cast<const float4*>(chunk + 4 * Chunk<Cols>::unit(r, 2 * vector + half));
        finish_vector<T>(v, p, s, bases, place.row + r, j);
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

// Prefetches C, and a bias beside it, into L2: store_warp_tile() has no registers to load C ahead. Called
// by a whole warp.
template <int WM, int WN>
__device__ inline void prefetch_warp_tile(const OutputParams& p, const Scalars& s, int32_t batch,
                                          int64_t row, int64_t column, int lane)
{
    if (s.beta != 0.0f && (p.c || p.c_array))
        prefetch_output(p, OutputBases(p, s, batch), row, column, WM, WN, lane, 32);
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
        if (is_plain_output(p, bases) && bases.vectors && p.n % 8 == 0 &&
            (p.type_d == T || p.type_d == Type::F32)) {
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
        const ChunkPlace place(p, row + current / across * epilogue_rows,
                               column + current % across * columns, columns);
        store_chunk_rows<T, columns>(p, s, bases, chunk, place, lane);
        __syncwarp();
    }
}

}  // namespace hg
