// Epilogue of the persistent kernels: from a consumer's accumulators to the output.
//
// Named barrier 1 + consumer: the 128 threads of a consumer, around its staging. TMA stores are waited
// for by the thread that issued them: before it lets a box be written again, and before it exits.
#pragma once

#include "arch/sm90/pieces.cuh"

namespace hg::sm90 {

// Fill the boxes of a block one after the other; each is stored by TMA while the next is filled. After an
// odd number of boxes the next block begins with the one that was stored last.
template <typename Fill, typename Store>
__device__ inline void store_boxes(int count, const Block& at, Fill fill, Store store)
{
    const bool leader = at.leads();
#pragma unroll
    for (int i = 0; i < count; ++i) {
        unsigned char* box = at.staging + i % boxes * box_bytes;
        if (leader && i == 0 && count % boxes != 0)
            ptx::bulk_wait_group_read<0>();
        else if (leader)
            ptx::bulk_wait_group_read<boxes - 1>();
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

// Sums of the operands' type, whose lines lie along y.
template <Config C, Type T>
__device__ inline void store_block_16(const CUtensorMap& map, uint64_t policy, float alpha,
                                      const float (&acc)[C.y / 2], const Block& at)
{
    constexpr int columns = box_columns(C);
    const auto start = [](int i) { return box_start(C, i, columns); };
    store_boxes(
        box_count(C, columns), at,
        [&](unsigned char* box, int i) {
            fill_box_16<T, columns>(ptx::shared_address(box), acc + start(i) / 2, alpha, at);
        },
        [&](uint32_t box, int i) {
            ptx::tma_store_3d_hint(&map, box, static_cast<int32_t>(at.y) + start(i),
                                   static_cast<int32_t>(at.x), at.batch, policy);
        });
}

// D, of floats or of the operands' type.
template <Config C, Type T>
__device__ inline void store_block_tma(const Params& p, float alpha, const float (&acc)[C.y / 2],
                                       const Block& at)
{
    const bool floats = p.output.type_d == Type::F32;
    const auto x = static_cast<int32_t>(at.x), y = static_cast<int32_t>(at.y);
    constexpr int rows = swapped_box_rows;
    const auto store = [&](uint32_t box, int column, int row) {
        ptx::tma_store_3d_hint(&p.d, box, column, row, at.batch, p.d_policy);
    };
    const auto start = [](int i, int width) { return box_start(C, i, width); };
    if (p.swapped && floats)
        store_boxes(
            box_count(C, rows), at,
            [&](unsigned char* box, int i) { fill_swapped_32(box, acc + start(i, rows) / 2, alpha, at); },
            [&](uint32_t box, int i) {
                store(box, x, y + start(i, rows));
                store(box + rows * span_bytes, x + 32, y + start(i, rows));
            });
    else if (p.swapped)
        store_boxes(
            box_count(C, rows), at,
            [&](unsigned char* box, int i) {
                fill_swapped_16<T>(ptx::shared_address(box), acc + start(i, rows) / 2, alpha, at);
            },
            [&](uint32_t box, int i) { store(box, x, y + start(i, rows)); });
    else if (floats)
        store_boxes(
            box_count(C, 32), at,
            [&](unsigned char* box, int i) {
                fill_box_32(ptx::shared_address(box), acc + start(i, 32) / 2, alpha, at);
            },
            [&](uint32_t box, int i) { store(box, y + start(i, 32), x); });
    else
        store_block_16<C, T>(p.d, p.d_policy, alpha, acc, at);
}

// The blocks of a tile, one after the other.
template <Config C, typename Store>
__device__ inline void for_each_block(const Accumulator<C>& acc, Block at, Store store)
{
#pragma unroll
    for (int block = 0; block < C.blocks(); ++block, at.x += 64)
        store(acc[block], at);
}

template <Config C, Type T>
__device__ inline void store_tile(const Params& p, const Scalars& s, Accumulator<C>& acc, const Block& at)
{
    if constexpr (takes_everything(C)) {
        if (p.store == Store::Pieces) [[unlikely]] {
            store_pieces<C, T>(p, p.output, p.tma_store, s, acc, at);
            return;
        }
    }
    float alpha = s.alpha;
    if (p.store == Store::InPlace) [[unlikely]] {
        add_in_place<C, T>(p, s, acc, at);
        if constexpr (takes_everything(C)) {
            if (p.output.aux)
                for_each_block<C>(acc, at, [&](const float(&block)[C.y / 2], const Block& where) {
                    store_block_16<C, T>(p.aux, p.d_policy, 1.0f, block, where);
                });
        }
        activate_in_place<C>(p.output.activation, acc);
        alpha = 1.0f;
    }
    for_each_block<C>(acc, at, [&](const float(&block)[C.y / 2], const Block& where) {
        store_block_tma<C, T>(p, alpha, block, where);
    });
}

}  // namespace hg::sm90
