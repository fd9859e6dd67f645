// From the accumulators of a warp to the output: the warp writes 16 rows of them to a chunk of shared
// memory, then reads the chunk along the output's rows. The chunk is private to the warp, so that
// __syncwarp() is the only synchronisation.
#pragma once

#include "arch/common/finish.cuh"

#include <utility>

namespace hg {

constexpr int epilogue_rows = 16;

// A chunk of 16 rows by Cols columns of floats. The 16-byte units of a row are permuted so that a
// fragment's writes (four rows at one column) hit every bank once.
template <int Cols>
struct Chunk {
    static_assert(Cols == 16 || Cols == 32 || Cols == 64);
    static constexpr int floats = epilogue_rows * Cols;

    // With 16 columns two rows fill all banks, else one.
    __device__ static int unit(int row, int unit)
    {
        return row * (Cols / 4) + (unit ^ (Cols == 16 ? row / 2 % 2 * 2 : row % 4 * 2));
    }

    // Writes an accumulator fragment of mma or wgmma: two neighbours in each of the rows r and r + 8.
    __device__ static void put(float* chunk, int column, const float (&fragment)[4], int lane)
    {
        const int row = lane / 4, col = column + lane % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float* to = chunk + 4 * unit(row + 8 * half, col / 4) + col % 4;
            *reinterpret_cast<float2*>(to) = make_float2(fragment[2 * half], fragment[2 * half + 1]);
        }
    }
};

// A thread's rows of a chunk, in one vector of columns: the Sums of finish_vectors().
template <int Cols>
struct ChunkRows {
    static constexpr int vectors = Cols / epilogue_vector, step = 32 / vectors, vectors_of_c = 2;
    static_assert(step % 4 == 0);  // so that units of all rows are permuted alike
    int first, vector;
    float* halves[2];

    __device__ ChunkRows(float* chunk, int lane) : first(lane / vectors), vector(lane % vectors)
    {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            halves[half] = chunk + 4 * Chunk<Cols>::unit(first, 2 * vector + half);
    }

    __device__ void get(float (&v)[8], int r) const
    {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                *reinterpret_cast<const float4*>(halves[half] + r * step * Cols);
    }

    __device__ void put(const float (&v)[8], int r) const
    {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<float4*>(halves[half] + r * step * Cols) =
                reinterpret_cast<const float4*>(v)[half];
    }
};

// Stores a chunk whose first element is (row, column) of the output, `columns` of its columns. Called by a
// whole warp.
template <Type T, int Cols>
__device__ inline void store_chunk(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                   float* chunk, int64_t row, int64_t column, int columns, int lane)
{
    const auto rows = static_cast<int>(min(p.m - row, int64_t{epilogue_rows}));
    columns = static_cast<int>(min(p.n - column, int64_t{columns}));
    if (!bases.vectors || columns % epilogue_vector != 0) {
        finish_elements(p, s, bases, row, column, rows, columns, 0, 1, [&](int r, int c) -> float& {
            return chunk[4 * Chunk<Cols>::unit(r, c / 4) + c % 4];
        });
        return;
    }
    const ChunkRows<Cols> sums(chunk, lane);
    const int j = sums.vector * epilogue_vector, step = sums.step;
    const ThreadRows at{row + sums.first, column + j, step, (rows - sums.first + step - 1) / step};
    if (j < columns && at.rows > 0)
        finish_vectors<T>(p, s, OutputColumn<T>(p, bases, at), at.rows, sums,
                          [&] { return std::pair(bases, at); });
}

}  // namespace hg
