// Split-K epilogue: each CTA of the cluster has multiplied a slice of K. It sends its partial sums to the
// CTAs that own them; an owner adds them up in the order of the slices, so that the bits do not depend on
// timing, and stores its blocks of the tile. Each warp does this for its own lanes.
//
// Beside the barriers of kernel.cuh:
//   partials_full   all other slices -> owner. Count 1: the owner's arrive, which expects the bytes of all
//                   other slices; completes when they have landed. No CTA waits at the end: an owner has
//                   waited for all that others send to it.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/tcgen05.cuh"
#include "arch/sm100/store.cuh"

#include <utility>

namespace hg::sm100 {

// K tiles first ... last - 1, which a CTA multiplies.
struct Slice {
    int32_t first, last;
};

template <Config C>
__device__ inline Slice slice_of_k(const Params& p, const Scalars& s)
{
    const int64_t k_tiles = count_k_tiles(p, s);
    if constexpr (!C.is_split())
        return {0, static_cast<int32_t>(k_tiles)};
    const uint32_t rank = ptx::cluster_ctarank();
    return {static_cast<int32_t>(k_tiles * rank / p.split),
            static_cast<int32_t>(k_tiles * (rank + 1) / p.split)};
}

// The blocks of eight columns that a slice owns.
struct OwnedBlocks {
    int first, last;

    __device__ static OwnedBlocks of(const Params& p, int slice)
    {
        return {p.owner_start[slice], p.owner_start[slice + 1]};
    }

    __device__ int blocks() const { return last - first; }
};

template <Config C>
__device__ inline void send_partials(const Params& p, const Stages<C>& stages, const Strip& at, int warp,
                                     int slice)
{
#pragma unroll 1
    for (int owner = 0; owner < p.split; ++owner) {
        if (owner == slice)
            continue;
        const OwnedBlocks owned = OwnedBlocks::of(p, owner);
        const int slot = slice < owner ? slice : slice - 1;
        const uint32_t partials_full = ptx::map_shared(stages.partials_full(), owner);
        uint32_t to = ptx::map_shared(stages.incoming(warp), owner) +
                      slot * owned.blocks() * fragment_bytes + at.lane * 16;
#pragma unroll 1
        for (int block = owned.first; block < owned.last; ++block, to += fragment_bytes) {
            float v[2][4];
            load_columns(reinterpret_cast<float(&)[8]>(v), at, 8 * block);
            ptx::store_async_f32x4(to, v[0], partials_full);
            ptx::store_async_f32x4(to + fragment_bytes / 2, v[1], partials_full);
        }
    }
}

// Adds up an owned block in the order of the slices. `from`: the first other slice's partial sums, those of
// the next slice `step` bytes further.
__device__ inline void reduce_block(float (&sum)[8], const Strip& at, int block, const unsigned char* from,
                                    int step, int own_slice, int split)
{
    float own[8];
    load_columns(own, at, 8 * block);
    for (int slice = 0; slice < split; ++slice) {
        float v[8];
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                slice == own_slice ? reinterpret_cast<const float4*>(own)[half]
                                   : *reinterpret_cast<const float4*>(from + half * (fragment_bytes / 2));
        if (slice != own_slice)
            from += step;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            sum[i] = slice == 0 ? v[i] : sum[i] + v[i];
    }
}

// One row of eight sums: the Sums of finish_vectors().
struct OneRow {
    static constexpr int vectors_of_c = 2;
    float (&sums)[8];

    __device__ void get(float (&v)[8], int) const
    {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = sums[e];
    }

    __device__ void put(const float (&v)[8], int) const
    {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            sums[e] = v[e];
    }
};

// Stores 32 rows by eight columns. A lane stores eight neighbours in a row of the output; with swap_ab the
// lanes first exchange their sums to get them.
__device__ inline void store_block(const Params& p, const Scalars& s, const OutputBases& bases,
                                   float (&v)[8], const Strip& at, int64_t n)
{
    int64_t i = at.m + at.lane, j = n;
    if (p.swap_ab) {
        float* rows = reinterpret_cast<float*>(at.staging);
        const int row = at.lane / 4, column = at.lane % 4 * 8;
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 8; ++r)
            rows[r * fragment_pitch + at.lane] = v[r];
        __syncwarp();
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                *reinterpret_cast<const float4*>(rows + row * fragment_pitch + column + 4 * half);
        i = n + row;
        j = at.m + column;
    }
    __syncwarp();
    if (i >= p.output.m || j >= p.output.n)
        return;
    if (bases.vectors && p.output.n - j >= epilogue_vector) {
        const ThreadRows row{i, j, 1, 1};
        finish_vectors<likely_type>(p.output, s, OutputColumn<likely_type>(p.output, bases, row), 1,
                                    OneRow{v}, [&] { return std::pair(bases, row); });
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
        if (j + e < p.output.n) {
            const float c =
                bases.c ? load_element(bases.c, i * p.output.ldc + j + e, p.output.type_c) : 0.0f;
            const float sum = __fmul_rn(s.alpha, v[e]);
            finish_element(p.output, bases, 1.0f, i, j + e, bases.c ? fmaf(s.beta, c, sum) : sum);
        }
}

template <Config C>
__device__ inline void store_slice(const Params& p, Smem<C>& smem, const Stages<C>& stages, uint32_t tmem,
                                   int warp)
{
    const int lane = threadIdx.x % 32, slice = static_cast<int>(ptx::cluster_ctarank());
    const OwnedBlocks owned = OwnedBlocks::of(p, slice);
    const int step = owned.blocks() * fragment_bytes;
    if (p.split > 1 && threadIdx.x == 0 && owned.blocks() > 0)
        ptx::mbarrier_arrive_expect_tx(stages.partials_full(), (p.split - 1) * epilogue_warps * step);
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const TileCoord tile = tile_coord(p, blockIdx.x / p.split);
    const Strip at{lane,
                   int64_t{tile.m} * C.tile_m + warp * 32,
                   int64_t{tile.n} * C.tile_n,
                   tile.batch,
                   tmem + (warp * 32 << 16),
                   count_k_tiles(p, scalars) > 0,
                   smem.staging[warp]};
    ptx::mbarrier_wait_parity(stages.acc_full(0, 0), 0);
    ptx::tmem_fence_after();
    send_partials(p, stages, at, warp, slice);
    if (p.split > 1 && owned.blocks() > 0)
        ptx::mbarrier_wait_parity(stages.partials_full(), 0);
    const OutputBases bases(p.output, scalars, at.batch);
    const unsigned char* from = smem.incoming[warp] + lane * 16;
#pragma unroll 1
    for (int block = owned.first; block < owned.last; ++block, from += fragment_bytes) {
        float sum[8];
        reduce_block(sum, at, block, from, step, slice, p.split);
        store_block(p, scalars, bases, sum, at, at.n + 8 * block);
    }
    ptx::tmem_fence_before();
}

}  // namespace hg::sm100
