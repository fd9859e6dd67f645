// From the mma fragments of a warp to the output. Those in aligned vectors without aux and most activations
// are stored from registers (fragment_output.cuh). All others go through a chunk of shared memory: the
// accumulators leave few registers, so that each thread finishes one vector at a time, or an element where
// vectors are not aligned.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/fragment_output.cuh"
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

// Where a lane is in a chunk that the warp stores element by element: neighbouring lanes store neighbours,
// in rows `row`, row + step, ... and columns `column`, column + lanes, ...
template <int Cols>
struct ChunkElements {
    static constexpr int lanes = Cols < 32 ? Cols : 32, step = 32 / lanes, across = Cols / lanes;
    int row, column;

    __device__ explicit ChunkElements(int lane) : row(lane / lanes), column(lane % lanes) {}
    __device__ static float get(const float* chunk, int row, int column)
    {
        return chunk[4 * Chunk<Cols>::unit(row, column / 4) + column % 4];
    }
};

// Stores alpha times the first `rows` rows and `columns` columns of a chunk. A lane reads its elements of
// two rows before it stores any, so that the latencies overlap.
template <int Cols>
__device__ inline void store_plain_elements(const OutputParams& p, float alpha, char* d, const float* chunk,
                                            int64_t row, int64_t column, int rows, int columns, int lane)
{
    using Elements = ChunkElements<Cols>;
    constexpr int at_once = 2, across = Elements::across, step = Elements::step;
    const Elements at(lane);
#pragma unroll 1
    for (int first = at.row; first < rows; first += at_once * step) {
        float v[at_once][across];
#pragma unroll
        for (int i = 0; i < at_once; ++i)
#pragma unroll
            for (int j = 0; j < across; ++j)
                v[i][j] = __fmul_rn(
                    alpha, Elements::get(chunk, first + i * step, at.column + j * Elements::lanes));
        const int64_t index = (row + first) * p.ldd + column + at.column;
#pragma unroll
        for (int i = 0; i < at_once; ++i)
#pragma unroll
            for (int j = 0; j < across; ++j)
                if (first + i * step < rows && at.column + j * Elements::lanes < columns)
                    store_element(v[i][j], d, index + i * step * p.ldd + j * Elements::lanes, p.type_d);
    }
}

// Stores a chunk of which `rows` and `columns` exist, element by element.
template <int Cols>
__device__ inline void store_chunk_elements(const OutputParams& p, const Scalars& s,
                                            const OutputBases& bases, const float* chunk, int64_t row,
                                            int64_t column, int rows, int columns, int lane)
{
    if (!bases.c && !bases.aux && p.bias_along == BiasAlong::None && p.activation == Activation::None) {
        store_plain_elements<Cols>(p, s.alpha, bases.d, chunk, row, column, rows, columns, lane);
        return;
    }
    const ChunkElements<Cols> at(lane);
#pragma unroll 1
    for (int r = at.row; r < rows; r += at.step)
#pragma unroll 1
        for (int c = at.column; c < columns; c += at.lanes)
            finish_element(p, s, bases, row + r, column + c, at.get(chunk, r, c));
}

// Stores a chunk whose first element is (row, column) of the output, `columns` of its columns. Called by a
// whole warp.
template <Type T, int Cols>
__device__ inline void store_chunk_rows(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                        float* chunk, int64_t row, int64_t column, int columns, int lane)
{
    const auto rows = static_cast<int>(min(p.m - row, int64_t{epilogue_rows}));
    columns = static_cast<int>(min(p.n - column, int64_t{columns}));
    if (!bases.vectors || columns % epilogue_vector != 0) {
        store_chunk_elements<Cols>(p, s, bases, chunk, row, column, rows, columns, lane);
        return;
    }
    constexpr int vectors = Cols / epilogue_vector, step = 32 / vectors;
    const int vector = lane % vectors;
    if (vector * epilogue_vector >= columns)
        return;
    const int64_t j = column + vector * epilogue_vector;
#pragma unroll 1
    for (int r = lane / vectors; r < rows; r += step) {
        float v[8];
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                *reinterpret_cast<const float4*>(chunk + 4 * Chunk<Cols>::unit(r, 2 * vector + half));
        finish_vector<T>(v, p, s, bases, row + r, j);
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

// Which outputs need no chunk: none, those that add nothing, or all that fits_registers() allows.
enum class Registers { None, Plain, All };

// Stores a warp's tile whose first element is (row, column) of the output, if need be 16 rows at a time
// through its chunk of `columns` columns. Changes the sums.
template <Type T, int WM, int WN, int columns = chunk_columns(WN), Registers R = Registers::All>
__device__ inline void store_warp_tile(const OutputParams& p, const Scalars& s,
                                       WarpAccumulator<WM, WN>& acc, float* chunk, int32_t batch,
                                       int64_t row, int64_t column, int lane)
{
    if constexpr (R != Registers::None) {
        const OutputBases bases(p, s, batch);
        if (fits_registers<T>(p, bases) && (R == Registers::All || adds_nothing(p, bases))) {
            float alpha = s.alpha;
            if constexpr (R == Registers::All)
                alpha = add_to_fragments<T, true>(p, s, bases, acc, row, column, lane);
            // Found anew: while C was added there were no registers to keep them.
            const OutputBases again(p, s, static_cast<int32_t>(ptx::mov_b32(static_cast<uint32_t>(batch))));
            store_from_registers<T>(p, alpha, again.d, acc, row, column, lane);
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
        store_chunk_rows<T, columns>(p, s, bases, chunk, row + current / across * epilogue_rows,
                                     column + current % across * columns, columns, lane);
        __syncwarp();
    }
}

}  // namespace hg
