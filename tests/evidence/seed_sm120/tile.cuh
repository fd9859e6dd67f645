// What the kernels share: a stage's fragments and products, and the output's way through shared memory.
// A lies in lines of tile_k elements, B in two panels of 64 columns, swizzled as TMA does it.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/warp_tile.cuh"
#include "tests/evidence/seed_sm120/params.hpp"

namespace hg::seed {

using Accumulator = WarpAccumulator<warp_m, warp_n>;

// Of one k step of 16.
struct Fragments {
    uint32_t a[warp_m / 16][4];
    uint32_t b[warp_n / 8][2];
};

// Where this thread's warp is in the tile.
struct Place {
    int row, column, lane;

    __device__ Place()
        : row(threadIdx.x / 32 / warps_n * warp_m), column(threadIdx.x / 32 % warps_n * warp_n),
          lane(threadIdx.x % 32)
    {
    }
};

// This CTA's tile.
__device__ inline Tile own_tile(const Params& p)
{
    const Tile tile = tile_at(p.columns_first, blockIdx.x);
    return {tile.n, tile.m, 0};
}

template <int K>
__device__ constexpr uint32_t stage_a(uint32_t base, int stage)
{
    return base + stage * stage_bytes(K);
}
template <int K>
__device__ constexpr uint32_t stage_b(uint32_t base, int stage)
{
    return stage_a<K>(base, stage) + 2 * tile_m * K;
}

// ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {r0, r1}, [address];   sm_75
__device__ inline void ldmatrix_x2_trans(uint32_t (&r)[2], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
}

template <int K>
__device__ inline void load(Fragments& f, uint32_t a, uint32_t b, const Place& warp, int k)
{
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i)
        ptx::ldmatrix_x4(f.a[i], a + tile_offset<Major::K, tile_m, K>(warp.row + 16 * i + warp.lane % 16,
                                                                      k + warp.lane / 16 * 8));
#pragma unroll
    for (int j = 0; j < warp_n / 8; ++j)
        ldmatrix_x2_trans(f.b[j],
                          b + tile_offset<Major::MN, tile_n, K>(warp.column + 8 * j, k + warp.lane % 16));
}

template <Type T>
__device__ inline void multiply(Accumulator& acc, const Fragments& f)
{
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i)
#pragma unroll
        for (int j = 0; j < warp_n / 8; ++j)
            ptx::mma_m16n8k16<T>(acc.v[i][j], f.a[i], f.b[j][0], f.b[j][1]);
}

// All threads, when nobody reads the stages any more: their memory stages the tile, in lines of 256 bytes,
// and whole lines go to global memory.
template <Type T>
__device__ inline void store_tile(const Params& p, Tile tile, const Accumulator& acc, unsigned char* smem)
{
    constexpr int line_bytes = 2 * tile_n, chunks = line_bytes / chunk_bytes;
    const auto at = [=](int row, int chunk) {
        return smem + row * line_bytes + (chunk ^ row % 8) * chunk_bytes;
    };
    const Place warp;
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i)
#pragma unroll
        for (int j = 0; j < warp_n / 8; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float* pair = acc.v[i][j] + 2 * half;
                const int row = warp.row + 16 * i + 8 * half + warp.lane / 4;
                unsigned char* const to = at(row, warp.column / chunk_elements + j) + warp.lane % 4 * 4;
                *reinterpret_cast<uint32_t*>(to) = to_bits2(pair[0], pair[1], T);
            }
    __syncthreads();
    uint16_t* const d = p.d + int64_t{tile.m} * tile_m * p.n + int64_t{tile.n} * tile_n;
#pragma unroll
    for (int i = 0; i < tile_m * chunks / threads; ++i) {
        const int index = i * threads + threadIdx.x, row = index / chunks, chunk = index % chunks;
        *reinterpret_cast<uint4*>(d + int64_t{row} * p.n + chunk * chunk_elements) =
            *reinterpret_cast<const uint4*>(at(row, chunk));
    }
}

}  // namespace hg::seed
