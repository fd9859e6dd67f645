// Epilogue of a warp: from its 32 lanes of an accumulator to the output. The warps do not synchronise: lane
// 0 of each issues its TMA stores, and waits for them before the warp fills a box again.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/epilogue.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/cluster_launch.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/tcgen05.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/sm100/config.hpp"

namespace hg::sm100 {

// Shared addresses of the stages, of their barriers and of all else that roles share.
template <Config C>
struct Stages {
    using Layout = Smem<C>;
    uint32_t base;

    __device__ explicit Stages(const Layout& smem) : base(ptx::shared_address_once(&smem)) {}
    __device__ uint32_t a(uint32_t stage) const { return base + stage * sizeof(typename Layout::Stage); }
    __device__ uint32_t b(uint32_t stage) const { return a(stage) + operand_bytes(a_rows(C)); }
    __device__ uint32_t full(uint32_t stage) const { return base + offsetof(Layout, full) + 8 * stage; }
    __device__ uint32_t empty(uint32_t stage) const { return base + offsetof(Layout, empty) + 8 * stage; }
    __device__ uint32_t acc_full(int consumer, uint32_t acc) const
    {
        return base + offsetof(Layout, acc_full) + 8 * (consumer * C.accumulators() + acc);
    }
    __device__ uint32_t acc_empty(int consumer, uint32_t acc) const
    {
        return base + offsetof(Layout, acc_empty) + 8 * (consumer * C.accumulators() + acc);
    }
    __device__ uint32_t tile_full(uint32_t i) const { return base + offsetof(Layout, tile_full) + 8 * i; }
    __device__ uint32_t tile_empty(uint32_t i) const { return base + offsetof(Layout, tile_empty) + 8 * i; }
    __device__ uint32_t response(uint32_t i) const { return base + offsetof(Layout, response) + 16 * i; }
    __device__ uint32_t partials_full() const { return base + offsetof(Layout, partials_full); }
    __device__ uint32_t incoming(int warp) const
    {
        return base + offsetof(Layout, incoming) + warp * sizeof(Layout::incoming[0]);
    }
};

// The type of the operands is a run-time value; outputs of this type take the first branch.
constexpr Type likely_type = Type::BF16;

// Coordinates of a tile, in tiles, as tcgen05 sees M and N.
struct TileCoord {
    int32_t m, n, batch;
};

__device__ inline TileCoord tile_coord(const Params& p, int32_t index)
{
    const Tile tile = tile_at(p.grid, index);
    return {p.swap_ab ? tile.n : tile.m, p.swap_ab ? tile.m : tile.n, tile.batch};
}

__device__ inline int32_t count_k_tiles(const Params& p, const Scalars& s)
{
    return s.alpha == 0.0f ? 0 : (p.k + tile_k - 1) / tile_k;
}

// A warp's 32 rows of an accumulator, and where they lie in the output, in elements.
struct Strip {
    int lane;
    int64_t m, n;
    int32_t batch;
    uint32_t tmem;
    bool multiplied;  // else K is 0: the accumulator was never written and counts as zero
    unsigned char* staging;
};

// Loads columns `first` ... first + Columns - 1 of this lane's row.
template <int Columns>
__device__ inline void load_columns(float (&v)[Columns], const Strip& at, int first)
{
    if (at.multiplied) {
        if constexpr (Columns == 8)
            ptx::tmem_load_x8(v, at.tmem + first);
        else
#pragma unroll
            for (int i = 0; i < Columns; i += 32)
                ptx::tmem_load_x32(v + i, at.tmem + first + i);
        ptx::tmem_wait_load();
    } else {
#pragma unroll
        for (float& value : v)
            value = 0.0f;
    }
}

// Fills a box with 64 columns of 16 bits, one row per lane.
__device__ inline void fill_box_16(unsigned char* box, const float (&v)[64], float alpha, Type type,
                                   int lane)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        uint32_t bits[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            bits[j] = to_bits2(alpha * v[8 * i + 2 * j], alpha * v[8 * i + 2 * j + 1], type);
        *reinterpret_cast<uint4*>(box + swizzle<128>(lane, i)) =
            make_uint4(bits[0], bits[1], bits[2], bits[3]);
    }
}

// Fills a box with 32 columns of floats, one row per lane.
__device__ inline void fill_box_32(unsigned char* box, const float (&v)[32], float alpha, int lane)
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        *reinterpret_cast<float4*>(box + swizzle<128>(lane, i)) =
            make_float4(alpha * v[4 * i], alpha * v[4 * i + 1], alpha * v[4 * i + 2], alpha * v[4 * i + 3]);
}

// swap_ab: fills a box with one row per column, which holds the 32 lanes' 16-bit elements.
__device__ inline void fill_transposed_16(unsigned char* box, const float (&v)[64], float alpha, Type type,
                                          int lane)
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        reinterpret_cast<uint16_t*>(box + swizzle<64>(i, lane / 8))[lane % 8] = to_bits(alpha * v[i], type);
}

// swap_ab: fills a box with one row per column, which holds the 32 lanes' floats.
__device__ inline void fill_transposed_32(unsigned char* box, const float (&v)[32], float alpha, int lane)
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        reinterpret_cast<float*>(box + swizzle<128>(i, lane / 4))[lane % 4] = alpha * v[i];
}

// Fills one box after another; TMA stores each while the next one is filled.
template <int Columns, typename Fill>
__device__ inline void store_boxes(const Params& p, const Strip& at, int64_t end_n, uint32_t& next,
                                   Fill fill)
{
#pragma unroll 1
    for (int64_t n = at.n; n < end_n; n += Columns, ++next) {
        float v[Columns];
        unsigned char* box = at.staging + next % staging_buffers * staging_buffer_bytes;
        load_columns(v, at, static_cast<int>(n - at.n));
        if (at.lane == 0)
            ptx::bulk_wait_group_read<staging_buffers - 1>();
        __syncwarp();
        fill(box, v);
        ptx::fence_proxy_async();
        __syncwarp();
        if (at.lane == 0) {
            const auto column = static_cast<int32_t>(p.swap_ab ? at.m : n);
            const auto row = static_cast<int32_t>(p.swap_ab ? n : at.m);
            ptx::tma_store_3d(&p.d, ptx::shared_address(box), column, row, at.batch);
            ptx::bulk_commit_group();
        }
    }
}

// Stores a plain output by TMA.
__device__ inline void store_strip_tma(const Params& p, float alpha, const Strip& at, int64_t end_n,
                                       uint32_t& next)
{
    const Type type = p.output.type_d;
    if (p.swap_ab && type == Type::F32)
        store_boxes<32>(p, at, end_n, next, [&](unsigned char* box, const float(&v)[32]) {
            fill_transposed_32(box, v, alpha, at.lane);
        });
    else if (p.swap_ab)
        store_boxes<64>(p, at, end_n, next, [&](unsigned char* box, const float(&v)[64]) {
            fill_transposed_16(box, v, alpha, type, at.lane);
        });
    else if (type == Type::F32)
        store_boxes<32>(p, at, end_n, next, [&](unsigned char* box, const float(&v)[32]) {
            fill_box_32(box, v, alpha, at.lane);
        });
    else
        store_boxes<64>(p, at, end_n, next, [&](unsigned char* box, const float(&v)[64]) {
            fill_box_16(box, v, alpha, type, at.lane);
        });
}

// Stores any output: 32 x 32 elements at a time through the staging buffers, as two chunks of 16 rows.
__device__ inline void store_strip_general(const Params& p, const Scalars& s, const Strip& at,
                                           int64_t end_n)
{
    using Rows = Chunk<32>;
    static_assert(2 * Rows::floats * sizeof(float) <= staging_buffers * staging_buffer_bytes);
    float* chunks = reinterpret_cast<float*>(at.staging);
    const OutputBases bases(p.output, s, at.batch);
#pragma unroll 1
    for (int64_t n = at.n; n < end_n; n += 32) {
        float v[32];
        load_columns(v, at, static_cast<int>(n - at.n));
        const int row = at.lane % epilogue_rows;
        float* to = chunks + at.lane / epilogue_rows * Rows::floats;
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            if (p.swap_ab)
                chunks[i / epilogue_rows * Rows::floats + 4 * Rows::unit(i % epilogue_rows, at.lane / 4) +
                       at.lane % 4] = v[i];
            else if (i % 4 == 0)
                *reinterpret_cast<float4*>(to + 4 * Rows::unit(row, i / 4)) =
                    make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
        }
        __syncwarp();
#pragma unroll 1
        for (int half = 0; half < 2; ++half)
            store_chunk<likely_type, 32>(p.output, s, bases, chunks + half * Rows::floats,
                                         (p.swap_ab ? n : at.m) + half * epilogue_rows,
                                         p.swap_ab ? at.m : n, 32, at.lane);
        __syncwarp();
    }
}

// Skips the columns of the tile past the end of the output. `next`: the box that the warp fills next.
template <Config C>
__device__ inline void store_strip(const Params& p, const Scalars& s, const Strip& at, uint32_t& next)
{
    const int64_t extent_m = p.swap_ab ? p.output.n : p.output.m;
    const int64_t extent_n = p.swap_ab ? p.output.m : p.output.n;
    const int64_t end_n = at.m < extent_m ? min(at.n + C.tile_n, extent_n) : 0;
    if (p.tma_store)
        store_strip_tma(p, s.alpha, at, end_n, next);
    else
        store_strip_general(p, s, at, end_n);
}

}  // namespace hg::sm100
