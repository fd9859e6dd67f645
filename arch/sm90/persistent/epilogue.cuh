// Epilogue of the persistent kernels: from a consumer's accumulators to the output.
//
//   named barrier 1 + consumer   the 128 threads of a consumer: a staging buffer is free; it is filled.
//
// The thread that issues TMA stores also waits for them: before the consumer fills a buffer again, and
// before the thread exits.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/epilogue_fused.cuh"
#include "arch/sm90/persistent/epilogue_general.cuh"
#include "arch/sm90/persistent/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// Fills the `count` boxes of a block one after another; TMA stores each while others are filled. If a tile
// has boxes for some of the buffers only, its first box waits for all stores before it.
template <Config C, typename Fill, typename Store>
__device__ inline void store_boxes(int count, const Block& at, Fill fill, Store store)
{
    constexpr int buffers = staging_buffers(C);
    const bool leader = at.leads(), whole_turns = C.blocks() * count % buffers == 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
        const int number = at.block * count + i;
        unsigned char* box = at.staging + number % buffers * staging_buffer_bytes;
        if (leader && number == 0 && !whole_turns)
            ptx::bulk_wait_group_read<0>();
        else if (leader)
            ptx::bulk_wait_group_read<buffers - 1>();
        ptx::bar_sync(1 + at.consumer, 128);
        fill(box, i);
        ptx::fence_proxy_async();
        ptx::bar_sync(1 + at.consumer, 128);
        if (leader) {
            store(ptx::shared_address(box), i);
            ptx::bulk_commit_group();
        }
    }
}

// Stores sums as 16-bit elements of the operands' type, row-major.
template <Config C, Type T>
__device__ inline void store_block_16(const CUtensorMap& map, uint64_t policy, float alpha,
                                      const float (&acc)[C.tile_n / 2], const Block& at)
{
    constexpr int columns = box_columns(C);
    const auto start = [](int i) { return box_start(C.tile_n, i, columns); };
    store_boxes<C>(
        box_count(C.tile_n, columns), at,
        [&](unsigned char* box, int i) {
            fill_box_16<T, columns>(ptx::shared_address(box), acc + start(i) / 2, alpha, at);
        },
        [&](uint32_t box, int i) {
            ptx::tma_store_3d_hint(&map, box, static_cast<int32_t>(at.n) + start(i),
                                   static_cast<int32_t>(at.m), at.batch, policy);
        });
}

// Stores D, of floats or of the operands' type.
template <Config C, Type T>
__device__ inline void store_block_tma(const Params& p, float alpha, const float (&acc)[C.tile_n / 2],
                                       const Block& at)
{
    const bool floats = p.output.type_d == Type::F32;
    const auto m = static_cast<int32_t>(at.m), n = static_cast<int32_t>(at.n);
    constexpr int rows = transposed_box_rows;
    const auto store = [&](uint32_t box, int column, int row) {
        ptx::tma_store_3d_hint(&p.d, box, column, row, at.batch, p.d_policy);
    };
    const auto start = [](int i, int width) { return box_start(C.tile_n, i, width); };
    if (p.swap_ab && floats)
        store_boxes<C>(
            box_count(C.tile_n, rows), at,
            [&](unsigned char* box, int i) {
                fill_transposed_32(box, acc + start(i, rows) / 2, alpha, at);
            },
            [&](uint32_t box, int i) {
                store(box, m, n + start(i, rows));
                store(box + rows * span_bytes, m + 32, n + start(i, rows));
            });
    else if (p.swap_ab)
        store_boxes<C>(
            box_count(C.tile_n, rows), at,
            [&](unsigned char* box, int i) {
                fill_transposed_16<T>(ptx::shared_address(box), acc + start(i, rows) / 2, alpha, at);
            },
            [&](uint32_t box, int i) { store(box, m, n + start(i, rows)); });
    else if (floats)
        store_boxes<C>(
            box_count(C.tile_n, 32), at,
            [&](unsigned char* box, int i) {
                fill_box_32(ptx::shared_address(box), acc + start(i, 32) / 2, alpha, at);
            },
            [&](uint32_t box, int i) { store(box, n + start(i, 32), m); });
    else
        store_block_16<C, T>(p.d, p.d_policy, alpha, acc, at);
}

// Calls store(accumulators, place) for each block of 64 rows.
template <Config C, typename Store>
__device__ inline void for_each_block(const Accumulator<C>& acc, Block at, Store store)
{
#pragma unroll
    for (; at.block < C.blocks(); ++at.block, at.m += 64)
        store(acc[at.block], at);
}

template <Config C, Type T>
__device__ inline void store_tile(const Params& p, const Scalars& s, Accumulator<C>& acc, const Block& at)
{
    if constexpr (fuses_all(C)) {
        if (p.epilogue == Epilogue::General) [[unlikely]] {
            store_general<C, T>(p, p.output, p.tma_store, s, acc, at);
            return;
        }
    }
    float alpha = s.alpha;
    if (p.epilogue == Epilogue::Fused) [[unlikely]] {
        add_fused<C, T>(p, s, acc, at);
        if constexpr (fuses_all(C)) {
            if (p.output.aux)
                for_each_block<C>(acc, at, [&](const float(&block)[C.tile_n / 2], const Block& place) {
                    store_block_16<C, T>(p.aux, p.d_policy, 1.0f, block, place);
                });
        }
        activate<C>(p.output.activation, acc);
        alpha = 1.0f;
    }
    for_each_block<C>(acc, at, [&](const float(&block)[C.tile_n / 2], const Block& place) {
        store_block_tma<C, T>(p, alpha, block, place);
    });
}

}  // namespace hg::sm90
