// Epilogue of the triangle kernels: a tile of a symmetric D is stored as it is and, where both halves are
// asked for, also transposed, so that the second half costs no second pass. Of the tile's boxes of 64 x 64
// elements those beside the diagonal are stored where they belong and at their mirror. Those on it are made
// symmetric in shared memory, or only the half that was asked for is stored. Those behind it, which a tile
// on the diagonal has, are left to their mirrors.
//
//   named barrier 1 + consumer   the 128 threads of a consumer: a staging buffer is free; it is filled; a
//                                box on the diagonal is filled, before its elements are copied.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/epilogue.cuh"
#include "arch/sm90/persistent/epilogue_fused.cuh"
#include "arch/sm90/persistent/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

constexpr int box_side = 64;  // rows and columns of a box

// An element of a box of 64 x 64.
__device__ inline uint16_t& element_of_box(unsigned char* box, int row, int column)
{
    return reinterpret_cast<uint16_t*>(
        box + swizzle<span_bytes>(row, column / chunk_elements))[column % chunk_elements];
}

// Copies one half of a filled box on the diagonal to the other. Rows i and 62 - i have 64 elements beside
// the diagonal together: each of the 128 threads takes one of those for every second i. Row 31 is its own
// partner.
__device__ inline void make_symmetric(unsigned char* box, bool upper)
{
    const int thread = threadIdx.x % 128, place = thread % box_side;
#pragma unroll 4
    for (int i = thread / box_side; i < box_side / 2; i += 128 / box_side) {
        const bool first = place < box_side - 1 - i;
        const int row = first ? i : box_side - 2 - i, column = first ? i + 1 + place : place;
        if (!first && row == i)
            continue;
        uint16_t &above = element_of_box(box, row, column), &below = element_of_box(box, column, row);
        if (upper)
            below = above;
        else
            above = below;
    }
}

// Stores the half of a filled box on the diagonal that was asked for, the diagonal included. `first`: the
// first row and column of the box in D.
__device__ inline void store_half(const Params& p, const Scalars& s, unsigned char* box, int64_t first,
                                  const Block& at)
{
    const OutputParams& o = p.output;
    const int thread = threadIdx.x % 128, column = thread % box_side;
    const int64_t left = o.n - first;
    auto* const to = reinterpret_cast<uint16_t*>(OutputBases(o, s, at.batch).d) + first * (o.ldd + 1);
    for (int row = thread / box_side; row < box_side; row += 128 / box_side)
        if (max(row, column) < left && (p.upper ? row <= column : column <= row))
            to[row * o.ldd + column] = element_of_box(box, row, column);
}

// Store number `number` of a tile, with the staging buffer that is its turn. Each is a bulk group, which is
// empty where nothing is wanted, so that as many later groups as there are other buffers may be pending.
template <Config C, typename Fill, typename Store>
__device__ inline void store_by_turns(int number, bool wanted, const Block& at, Fill fill, Store store)
{
    constexpr int buffers = staging_buffers(C);
    unsigned char* const box = at.staging + number % buffers * staging_buffer_bytes;
    if (wanted) {
        if (at.leads())
            ptx::bulk_wait_group_read<buffers - 1>();
        ptx::bar_sync(1 + at.consumer, 128);
        fill(box);
        ptx::fence_proxy_async();
        ptx::bar_sync(1 + at.consumer, 128);
        if (at.leads())
            store(ptx::shared_address(box));
    }
    if (at.leads())
        ptx::bulk_commit_group();
}

// 64 rows by 64 columns of sums at (at.m, n), whose box is on the diagonal or not. `s`: with the alpha that
// the sums are still multiplied by.
template <Config C, Type T>
__device__ inline void store_box_where_it_belongs(const Params& p, int number, bool wanted,
                                                  bool on_diagonal, const Scalars& s, const float* sums,
                                                  int64_t n, const Block& at)
{
    const bool by_tma = p.mirrored || !on_diagonal;
    store_by_turns<C>(
        number, wanted, at,
        [&](unsigned char* box) {
            fill_box_16<T, box_side>(ptx::shared_address(box), sums, s.alpha, at);
            if (!on_diagonal)
                return;
            ptx::bar_sync(1 + at.consumer, 128);
            if (by_tma)
                make_symmetric(box, p.upper);
            else
                store_half(p, s, box, n, at);
        },
        [&](uint32_t box) {
            if (by_tma)
                ptx::tma_store_3d_hint(&p.d, box, static_cast<int32_t>(n), static_cast<int32_t>(at.m),
                                       at.batch, p.d_policy);
        });
}

// The same at (n, at.m), in two boxes of 32 rows.
template <Config C, Type T>
__device__ inline void store_box_mirrored(const Params& p, int number, bool wanted, float alpha,
                                          const float* sums, int64_t n, const Block& at)
{
    constexpr int rows = transposed_box_rows, bytes = rows * span_bytes;
    static_assert(2 * rows == box_side && 2 * bytes == staging_buffer_bytes);
    store_by_turns<C>(
        number, wanted, at,
        [&](unsigned char* box) {
            fill_transposed_16<T>(ptx::shared_address(box), sums, alpha, at);
            fill_transposed_16<T>(ptx::shared_address(box) + bytes, sums + rows / 2, alpha, at);
        },
        [&](uint32_t box) {
            const auto column = static_cast<int32_t>(at.m), row = static_cast<int32_t>(n);
            ptx::tma_store_3d_hint(&p.aux, box, column, row, at.batch, p.d_policy);
            ptx::tma_store_3d_hint(&p.aux, box + bytes, column, row + rows, at.batch, p.d_policy);
        });
}

template <Config C, Type T>
__device__ inline void store_triangle_tile(const Params& p, Scalars s, Accumulator<C>& acc,
                                           const Block& tile)
{
    constexpr int columns = C.tile_n / box_side;
    static_assert(C.tile_m == C.tile_n && C.tile_n % box_side == 0 && C.consumers_per_tile() == 1);
    static_assert(box_columns(C) == box_side);
    static_assert(2 * C.blocks() * columns % staging_buffers(C) == 0,
                  "a tile begins with the first buffer");
    if (p.epilogue == Epilogue::Fused) [[unlikely]] {
        add_fused<C, T>(p, s, acc, tile);
        s.alpha = 1.0f;
    }
    const bool diagonal = tile.m == tile.n;
    for_each_block<C>(acc, tile, [&](const float(&block)[C.tile_n / 2], const Block& at) {
#pragma unroll
        for (int column = 0; column < columns; ++column) {
            const bool on_diagonal = diagonal && column == at.block;
            const bool behind = diagonal && (p.upper ? column < at.block : at.block < column);
            const int number = 2 * (at.block * columns + column);
            const int64_t n = at.n + column * box_side;
            const float* const sums = block + column * box_side / 2;
            store_box_where_it_belongs<C, T>(p, number, !behind, on_diagonal, s, sums, n, at);
            const bool mirrored = p.mirrored && !behind && !on_diagonal;
            store_box_mirrored<C, T>(p, number + 1, mirrored, s.alpha, sums, n, at);
        }
    });
}

}  // namespace hg::sm90
