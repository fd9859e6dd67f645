// Epilogue of the persistent kernels: from a consumer's accumulators to the output.
//
// Named barrier 1 + consumer: the 128 threads of a consumer, around its staging. TMA stores are waited
// for by the thread that issued them: before it lets a box be written again, and before it exits.
#pragma once

#include "arch/sm90/bias.cuh"

namespace hg::sm90 {

// A consumer, and where its 64 x C.y block lies in the output, in elements.
struct Block {
    int consumer, warp, lane;
    int64_t x, y;
    int32_t batch;
    unsigned char* staging;
};

// Sixteen rows of a warp x Columns columns of 16-bit results into a swizzled box of 64 rows.
template <Type T, int Columns>
__device__ inline void fill_box_16(uint32_t box, const float* acc, float alpha, const Block& at)
{
    const int row = at.warp * 16 + at.lane / 8 % 2 * 8 + at.lane % 8;
#pragma unroll
    for (int j = 0; j < Columns / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], T);
        ptx::stmatrix_x4(box + swizzle<2 * Columns>(row, 2 * j + at.lane / 16), bits);
    }
}

// Sixteen rows of a warp x 32 columns of floats.
__device__ inline void fill_box_32(unsigned char* box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = at.warp * 16 + half * 8 + at.lane / 4, column = 8 * j + at.lane % 4 * 2;
            float* to = reinterpret_cast<float*>(box + swizzle<span_bytes>(row, column / 4)) + column % 4;
            *reinterpret_cast<float2*>(to) =
                make_float2(alpha * acc[4 * j + 2 * half], alpha * acc[4 * j + 2 * half + 1]);
        }
}

// Swapped: sixteen columns of a warp x 32 rows of 16-bit results into a box of 32 rows x 64 columns.
template <Type T>
__device__ inline void fill_swapped_16(uint32_t box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int j = 0; j < swapped_box_rows / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], T);
        const int row = 16 * j + at.lane / 16 * 8 + at.lane % 8;
        ptx::stmatrix_x4_trans(box + swizzle<span_bytes>(row, at.warp * 2 + at.lane / 8 % 2), bits);
    }
}

// Swapped: of floats, into two boxes of 32 rows x 32 columns.
__device__ inline void fill_swapped_32(unsigned char* box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int i = 0; i < swapped_box_rows / 2; ++i) {
        const int row = i / 4 * 8 + at.lane % 4 * 2 + i % 2;
        const int column = at.warp * 16 + i / 2 % 2 * 8 + at.lane / 4;
        unsigned char* half = box + column / 32 * (swapped_box_rows * span_bytes);
        float* to = reinterpret_cast<float*>(half + swizzle<span_bytes>(row, column % 32 / 4));
        to[column % 4] = alpha * acc[i];
    }
}

// Fill the boxes of a block one after the other; each is stored by TMA while the next is filled. After an
// odd number of boxes the next block begins with the one that was stored last.
template <typename Fill, typename Store>
__device__ inline void store_boxes(int count, const Block& at, Fill fill, Store store)
{
    const bool leader = at.warp == 0 && at.lane == 0;
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

// A plain output of floats or of the operands' type, by TMA.
template <Config C, Type T>
__device__ inline void store_block_tma(const Params& p, float alpha, const float (&acc)[C.y / 2],
                                       const Block& at)
{
    const bool floats = p.output.type_d == Type::F32;
    const auto x = static_cast<int32_t>(at.x), y = static_cast<int32_t>(at.y);
    constexpr int columns = box_columns(C), rows = swapped_box_rows;
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
            [&](unsigned char* box, int i) { fill_box_32(box, acc + start(i, 32) / 2, alpha, at); },
            [&](uint32_t box, int i) { store(box, y + start(i, 32), x); });
    else
        store_boxes(
            box_count(C, columns), at,
            [&](unsigned char* box, int i) {
                fill_box_16<T, columns>(ptx::shared_address(box), acc + start(i, columns) / 2, alpha, at);
            },
            [&](uint32_t box, int i) { store(box, y + start(i, columns), x); });
}

// The accumulators in chunks of 64 x and up to 64 y, one after the other: `body` gets a chunk's block and
// its first y as constants, `then` may get them as numbers. The loop is not unrolled, so that what follows
// a chunk is there once.
template <Config C, typename Body, typename Then>
__device__ inline void for_each_chunk(Body body, Then then)
{
    constexpr int across = (C.y + 63) / 64, chunks = C.blocks() * across;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
        for (int i = 0; i < chunks; ++i)
            if (i == chunk)
                body(i / across, i % across * 64);
        then(chunk / across, chunk % across * 64);
    }
}

// Everything else: each warp walks 16 rows, up to 64 columns at a time, in its quarter of the staging.
template <Config C, Type T>
__device__ inline void store_tile_rows(const Params& p, const Scalars& s, const Accumulator<C>& acc,
                                       const Block& at)
{
    using Rows = Chunk<64>;
    static_assert(4 * sizeof(float) * Rows::floats <= boxes * box_bytes);
    float* chunk = reinterpret_cast<float*>(at.staging) + at.warp * Rows::floats;
    const OutputBases bases(p.output, s, at.batch);
    for_each_chunk<C>(
        [&](int block, int first) {
            __syncwarp();
#pragma unroll
            for (int j = 0; j < 64 && first + j < C.y; j += 8)
                Rows::put(chunk, j, reinterpret_cast<const float(&)[4]>(acc[block][(first + j) / 2]),
                          at.lane);
        },
        [&](int block, int first) {
            __syncwarp();
            store_chunk<T, 64>(p.output, s, bases, chunk, at.x + block * 64 + at.warp * epilogue_rows,
                               at.y + first, min(64, C.y - first), at.lane);
        });
}

// Swapped: the warps' columns meet in the staging, 64 rows at a time; then each warp walks 16 of them.
template <Config C, Type T>
__device__ inline void store_tile_columns(const Params& p, const Scalars& s, const Accumulator<C>& acc,
                                          const Block& at)
{
    using Rows = Chunk<64>;
    float* chunks = reinterpret_cast<float*>(at.staging);
    const OutputBases bases(p.output, s, at.batch);
    for_each_chunk<C>(
        [&](int block, int first) {
            ptx::bar_sync(1 + at.consumer, 128);
#pragma unroll
            for (int i = 0; i < 32 && first + 2 * i < C.y; ++i) {
                const int row = i / 4 * 8 + at.lane % 4 * 2 + i % 2;
                const int column = at.warp * 16 + i / 2 % 2 * 8 + at.lane / 4;
                chunks[row / 16 * Rows::floats + 4 * Rows::unit(row % 16, column / 4) + column % 4] =
                    acc[block][first / 2 + i];
            }
        },
        [&](int block, int first) {
            ptx::bar_sync(1 + at.consumer, 128);
            const int row = first + at.warp * epilogue_rows;
            if (row < C.y)
                store_chunk<T, 64>(p.output, s, bases, chunks + at.warp * Rows::floats, at.y + row,
                                   at.x + block * 64, 64, at.lane);
        });
}

// alpha times the sums, and the bias, which passes through the staging once nothing is stored from there.
template <Config C>
__device__ inline void apply_bias(const Params& p, float alpha, Accumulator<C>& acc, const TileBias& bias,
                                  int first_block, const Block& at)
{
    float* const staged = reinterpret_cast<float*>(at.staging);
    const int thread = at.warp * 32 + at.lane, first = bias.along_y ? 0 : first_block * 64;
    if (thread == 0)
        ptx::bulk_wait_group_read<0>();
    ptx::bar_sync(1 + at.consumer, 128);
#pragma unroll 1
    for (int i = thread; i < (bias.along_y ? C.y : C.blocks() * 64); i += 128)
        staged[i] = bias.load(first + i);
    ptx::bar_sync(1 + at.consumer, 128);
#pragma unroll
    for (int block = 0; block < C.blocks(); ++block) {
#pragma unroll
        for (float& v : acc[block])
            v = __fmul_rn(alpha, v);
        add_bias<C.y>(acc[block], staged + (bias.along_y ? 0 : block * 64 + at.warp * 16), bias.along_y);
    }
}

template <Config C, Type T>
__device__ inline void store_tile(const Params& p, const Scalars& s, Accumulator<C>& acc,
                                  unsigned char* staging, const Position& at, int consumer, int first_block)
{
    const int thread = threadIdx.x % 128;
    Block where{
        consumer, thread / 32, thread % 32, int64_t{at.x} * C.x + first_block * 64, int64_t{at.y} * C.y,
        at.batch, staging};
    if (stores_by_tma_only(C) || p.tma_store) {
        float alpha = s.alpha;
        if (p.output.bias_along != BiasAlong::None) [[unlikely]] {
            apply_bias<C>(p, alpha, acc, TileBias::of<C>(p.output, p.swapped, at), first_block, where);
            alpha = 1.0f;
        }
#pragma unroll
        for (int block = 0; block < C.blocks(); ++block, where.x += 64)
            store_block_tma<C, T>(p, alpha, acc[block], where);
    } else if constexpr (!stores_by_tma_only(C)) {
        if (p.swapped)
            store_tile_columns<C, T>(p, s, acc, where);
        else
            store_tile_rows<C, T>(p, s, acc, where);
    }
}

}  // namespace hg::sm90
