// Epilogue: from a warp's accumulators to the output, through the warp's part of a stage. TMA stores a
// plain output box by box, while the warp fills the next one; any other output is stored row by row. The
// warps do not synchronise.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/warp_store.cuh"
#include "arch/sm120/config.hpp"
#include "arch/sm120/mainloop.cuh"

namespace hg::sm120 {

// A warp's part of a tile: where it begins in the output, and the warp's own shared memory.
struct WarpPart {
    int32_t row, column;  // TMA has 32-bit coordinates
    int32_t batch;
    unsigned char* staging;
    int lane;
};

// Fills a box with 16 rows by Columns columns of 16-bit results; a fragment has eight columns.
template <int Columns>
__device__ inline void fill_box_16(unsigned char* box, const float (*fragments)[4], float alpha, Type type,
                                   int lane)
{
    const uint32_t to = ptx::shared_address(box);
#pragma unroll
    for (int j = 0; j < Columns / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float* pair = fragments[2 * j + i / 2] + i % 2 * 2;
            bits[i] = to_bits2(alpha * pair[0], alpha * pair[1], type);
        }
        ptx::stmatrix_x4(to + swizzle<2 * Columns>(lane % 16, 2 * j + lane / 16), bits);
    }
}

// Fills a box with 16 rows by 32 columns of floats.
__device__ inline void fill_box_32(unsigned char* box, const float (*fragments)[4], float alpha, int lane)
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = half * 8 + lane / 4, column = 8 * j + lane % 4 * 2;
            float* to = reinterpret_cast<float*>(box + swizzle<128>(row, column / 4)) + column % 4;
            *reinterpret_cast<float2*>(to) =
                make_float2(alpha * fragments[j][2 * half], alpha * fragments[j][2 * half + 1]);
        }
}

// Stores by TMA. The warp fills a box again when TMA has read it.
template <Config C, Type D, typename Accumulator>
__device__ inline void store_boxes(const Params& p, float alpha, const Accumulator& acc,
                                   const WarpPart& part)
{
    constexpr int columns = box_columns(C, D), bytes = box_bytes(C, D), boxes = C.staging_bytes() / bytes;
    constexpr int boxes_per_row = C.warp_n() / columns;
#pragma unroll
    for (int i = 0; i < C.warp_m() / box_rows * boxes_per_row; ++i) {
        const int row = i / boxes_per_row, column = i % boxes_per_row * columns;
        unsigned char* box = part.staging + i % boxes * bytes;
        if (i >= boxes) {
            if (part.lane == 0)
                ptx::bulk_wait_group_read<boxes - 1>();
            __syncwarp();
        }
        if constexpr (D == Type::F32)
            fill_box_32(box, acc.v[row] + column / 8, alpha, part.lane);
        else
            fill_box_16<columns>(box, acc.v[row] + column / 8, alpha, p.output.type_d, part.lane);
        ptx::fence_proxy_async();
        __syncwarp();
        if (part.lane == 0) {
            ptx::tma_store_3d(&p.d, ptx::shared_address(box), part.column + column,
                              part.row + row * box_rows, part.batch);
            ptx::bulk_commit_group();
        }
    }
    // TMA must have read the last box before the producer fills the stage again or the CTA exits.
    if (part.lane == 0)
        ptx::bulk_wait_group_read<0>();
}

template <Config C, Type T, typename Accumulator>
__device__ inline void store_part(const Params& p, const Scalars& s, const Accumulator& acc,
                                  const WarpPart& part)
{
    constexpr int widest = chunk_columns(C.warp_n());
    constexpr int columns = 4 * Chunk<widest>::floats <= C.staging_bytes() ? widest : 32;
    static_assert(4 * Chunk<columns>::floats <= C.staging_bytes());
    if (!p.tma_store) {
        store_warp_tile<T, C.warp_m(), C.warp_n(), columns, false>(
            p.output, s, acc, reinterpret_cast<float*>(part.staging), part.batch, part.row, part.column,
            part.lane);
        ptx::fence_proxy_async();  // TMA writes there next
    } else if (p.output.type_d == Type::F32) {
        store_boxes<C, Type::F32>(p, s.alpha, acc, part);
    } else {
        store_boxes<C, Type::F16>(p, s.alpha, acc, part);
    }
}

}  // namespace hg::sm120
