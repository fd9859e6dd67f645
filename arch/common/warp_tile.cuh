// ldmatrix and mma.sync over one stage of shared memory: a warp's share of the tile. The kernels of sm80
// and sm120 use it.
#pragma once

#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/mma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"

namespace hg {

// The offset in a tile of a lane's line for ldmatrix.x4 in the 16 x 16 block at (row, 0), computed once;
// `row` is a multiple of 16. The four 8 x 8 matrices come in the order that mma.sync expects: of A the row
// halves first, of B the K halves first.
template <Major M, int K, bool IsA>
__device__ inline uint32_t lane_offset(int row, int lane)
{
    const int quarter = lane / 8;
    const int row_half = IsA ? quarter % 2 : quarter / 2;
    const int k_half = IsA ? quarter / 2 : quarter % 2;
    const uint32_t offset = M == Major::K
                                ? row * (2 * K) + swizzle<2 * K>(8 * row_half + lane % 8, k_half)
                                : row / 64 * (128 * K) + (swizzle<128>(8 * k_half + lane % 8, row_half) ^
                                                          static_cast<uint32_t>(row % 64 * 2));
    return ptx::mov_b32(offset);
}

// Loads the block that is `row` rows and `k` K's from the one of `address`, a tile's address plus
// lane_offset(). A tile is aligned to 128 bytes, the swizzle repeats every eight lines and a block is two
// chunks wide, so that a distance within a line combines by exclusive or, without a carry; the other
// distances are constants that ldmatrix adds.
template <Major M, int K>
__device__ inline void load_block(uint32_t (&block)[4], uint32_t address, int row, int k)
{
    if constexpr (M == Major::K)
        ptx::ldmatrix_x4(block, (address ^ (2 * k)) + row * (2 * K));
    else
        ptx::ldmatrix_x4_trans(block, (address ^ (row % 64 * 2)) + row / 64 * (128 * K) + k * 128);
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

// A warp's share of a tile: WM rows of A from a multiple of WM on, and WN rows of B from a multiple of WN
// on.
template <Type T, Major MA, Major MB, int K, int WM, int WN>
struct WarpTile {
    static_assert(64 % WM == 0 && 64 % WN == 0);  // in one panel: see load_block()
    using Fragments = WarpFragments<WM, WN>;
    using Accumulator = WarpAccumulator<WM, WN>;

    // Offsets of a lane in A's and B's parts of a stage, computed once; later the addresses of one stage.
    struct Lane {
        uint32_t a, b;
        __device__ Lane(int row_a, int row_b, int lane)
            : a(lane_offset<MA, K, true>(row_a, lane)), b(lane_offset<MB, K, false>(row_b, lane))
        {
        }
        __device__ Lane(const Lane& lane, uint32_t tile_a, uint32_t tile_b)
            : a(lane.a + tile_a), b(lane.b + tile_b)
        {
        }
    };

    __device__ static void load(Fragments& f, const Lane& at, int k)
    {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_block<MA, K>(f.a[i], at.a, 16 * i, k);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            load_block<MB, K>(f.b[j], at.b, 16 * j, k);
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
    __device__ static void accumulate(Accumulator& acc, const Lane& stage)
    {
        Fragments f[2];
        load(f[0], stage, 0);
#pragma unroll
        for (int step = 0; step < K / 16; ++step) {
            if (step + 1 < K / 16)
                load(f[(step + 1) % 2], stage, 16 * (step + 1));
            multiply(acc, f[step % 2]);
        }
    }
};

}  // namespace hg
