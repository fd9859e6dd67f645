// ldmatrix and mma.sync over one stage of shared memory: a warp's share of the tile. The kernels of sm80
// and sm120 use it.
#pragma once

#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/mma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"

namespace hg {

// The offset of a lane's row for ldmatrix.x4 in a 16 x 16 block, computed once. The four 8 x 8 matrices
// come in the order that mma.sync expects: of A the row halves first, of B the K halves first.
template <Major M, int K, bool IsA>
__device__ inline uint32_t lane_offset(int lane)
{
    const int quarter = lane / 8;
    const int row_half = IsA ? quarter % 2 : quarter / 2;
    const int k_half = IsA ? quarter / 2 : quarter % 2;
    const uint32_t offset = M == Major::K ? swizzle<2 * K>(8 * row_half + lane % 8, k_half)
                                          : swizzle<128>(8 * k_half + lane % 8, row_half);
    return ptx::mov_b32(offset);
}

// Loads the block at (row, k), multiples of 16. The swizzle repeats every eight lines and a block is two
// chunks wide, so that the offset of the block and that of the lane combine by exclusive or, without a
// carry.
template <Major M, int K>
__device__ inline void load_block(uint32_t (&block)[4], uint32_t tile, int row, int k, uint32_t lane)
{
    if constexpr (M == Major::K)
        ptx::ldmatrix_x4(block, tile + row * (2 * K) + (lane ^ (2 * k)));
    else
        ptx::ldmatrix_x4_trans(block, tile + row / 64 * (128 * K) + k * 128 + (lane ^ (row % 64 * 2)));
}

// Accumulators of a warp: WM x WN elements as mma.m16n8 fragments.
template <int WM, int WN>
struct WarpAccumulator {
    float v[WM / 16][WN / 8][4];

    __device__ void clear()
    {
#pragma unroll
        for (auto& row : v)
#pragma unroll
            for (auto& block : row)
#pragma unroll
                for (float& x : block)
                    x = 0.0f;
    }
};

// Fragments of one k step of 16.
template <int WM, int WN>
struct WarpFragments {
    uint32_t a[WM / 16][4];
    uint32_t b[WN / 16][4];
};

// The warp's rows of A start at row_a of an m x k tile, its rows of B at row_b of an n x k tile.
template <Type T, Major MA, Major MB, int K, int WM, int WN>
struct WarpTile {
    using Fragments = WarpFragments<WM, WN>;
    using Accumulator = WarpAccumulator<WM, WN>;

    // Offsets of a lane, computed once.
    struct Lane {
        uint32_t a, b;
        __device__ explicit Lane(int lane)
            : a(lane_offset<MA, K, true>(lane)), b(lane_offset<MB, K, false>(lane))
        {
        }
    };

    __device__ static void load(Fragments& f, uint32_t tile_a, uint32_t tile_b, int row_a, int row_b, int k,
                                const Lane& lane)
    {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_block<MA, K>(f.a[i], tile_a, row_a + 16 * i, k, lane.a);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            load_block<MB, K>(f.b[j], tile_b, row_b + 16 * j, k, lane.b);
    }

    __device__ static void multiply(Accumulator& acc, const Fragments& f)
    {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < WN / 8; ++j)
                ptx::mma_m16n8k16<T>(acc.v[i][j], f.a[i], f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]);
    }

    // Multiplies one stage, loading the fragments of the next K step while multiplying this one.
    __device__ static void accumulate(Accumulator& acc, uint32_t tile_a, uint32_t tile_b, int row_a,
                                      int row_b, const Lane& lane)
    {
        Fragments f[2];
        load(f[0], tile_a, tile_b, row_a, row_b, 0, lane);
#pragma unroll
        for (int step = 0; step < K / 16; ++step) {
            if (step + 1 < K / 16)
                load(f[(step + 1) % 2], tile_a, tile_b, row_a, row_b, 16 * (step + 1), lane);
            multiply(acc, f[step % 2]);
        }
    }
};

}  // namespace hg
