// From the mma fragments of a warp to the output, for everything that a plain store cannot do.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/warp_tile.cuh"

namespace hg {

// Columns that pass through a warp's chunk of shared memory at a time.
constexpr int chunk_columns(int warp_n) { return warp_n < 64 ? warp_n : 64; }

// The warp's first element is (row, column) of the output; 16 rows at a time through the warp's chunk.
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
            store_chunk<columns>(p, s, bases, chunk, row + i * epilogue_rows, column + first, columns,
                                 lane);
            __syncwarp();
        }
}

}  // namespace hg
