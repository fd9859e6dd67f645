// Epilogue of the gated kernels: a thread's sums of the first half of a tile's columns are gates of those
// of the second half. TMA stores the tile of D, half as wide.
//
//   named barrier 1 + consumer   the 128 threads of a consumer: the bias is staged, if there is one; a
//                                staging buffer is free; it is filled.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/epilogue.cuh"
#include "arch/sm90/persistent/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// Adds what stage_bias() has staged to alpha times the sums, and returns the factor that is left of alpha.
template <Config C>
__device__ inline float add_gate_bias(const Params& p, float alpha, float (&acc)[C.tile_n / 2],
                                      const Block& at)
{
    if (p.output.bias_along == BiasAlong::None) [[likely]]
        return alpha;
    transform(acc, [=](float sum) { return __fmul_rn(alpha, sum); });
    ptx::bar_sync(1 + at.consumer, 128);
    add_bias<C.tile_n>(acc, at.bias, true);
    return 1.0f;
}

// Replaces the first half of the sums by elements of D.
template <Config C>
__device__ inline void apply_gates(const Params& p, float alpha, float (&acc)[C.tile_n / 2],
                                   const Block& at)
{
    alpha = add_gate_bias<C>(p, alpha, acc, at);
    constexpr int half = C.tile_n / 4;
    const Gate& gate = p.gate.gate;
    with_short_gate_function(p.output.activation, gate.slope, [&](auto activation) {
#pragma unroll
        for (int i = 0; i < half; ++i)
            acc[i] = gated(__fmul_rn(alpha, acc[i]), __fmul_rn(alpha, acc[i + half]), gate, activation);
    });
}

template <Config C, Type T>
__device__ inline void store_gated_tile(const Params& p, const Scalars& s, Accumulator<C>& acc, Block at)
{
    constexpr int width = C.tile_n / 2, columns = gated_box_columns(C);
    const auto start = [](int i) { return box_start(width, i, columns); };
    at.n /= 2;
#pragma unroll
    for (; at.block < C.blocks(); ++at.block, at.m += 64) {
        apply_gates<C>(p, s.alpha, acc[at.block], at);
        store_boxes<C>(
            box_count(width, columns), at,
            [&](unsigned char* box, int i) {
                fill_box_16<T, columns>(ptx::shared_address(box), acc[at.block] + start(i) / 2, 1.0f, at);
            },
            [&](uint32_t box, int i) {
                ptx::tma_store_3d_hint(&p.d, box, static_cast<int32_t>(at.n) + start(i),
                                       static_cast<int32_t>(at.m), at.batch, p.d_policy);
            });
    }
}

// Copies the rows before `end` of a filled box that begins at (row, column) of D. Called by a consumer's
// threads.
template <int Columns>
__device__ inline void copy_gated_rows(const Params& p, const Scalars& s, const unsigned char* box,
                                       int64_t row, int64_t column, int32_t end, int32_t batch)
{
    constexpr int chunks = Columns / chunk_elements, rows_at_once = 128 / chunks;
    const int thread = threadIdx.x % 128, chunk = thread % chunks;
    column += chunk * chunk_elements;
    if (column >= p.output.n / 2)
        return;
    char* const d = OutputBases(p.output, s, batch).d;
    for (int i = thread / chunks; i < 64 && row + i < end; i += rows_at_once)
        ptx::store_global_v4(reinterpret_cast<uint4*>(d + 2 * ((row + i) * p.output.ldd + column)),
                             *reinterpret_cast<const uint4*>(box + swizzle<2 * Columns>(i, chunk)));
}

// A tile of a group that ends at row `end` of D, inside the tile: the threads store it, not TMA.
template <Config C, Type T>
__device__ inline void store_last_gated_tile(const Params& p, const Scalars& s, Accumulator<C>& acc,
                                             Block at, int32_t end)
{
    constexpr int width = C.tile_n / 2, columns = gated_box_columns(C);
    at.n /= 2;
    if (at.leads())
        ptx::bulk_wait_group_read<0>();
#pragma unroll
    for (; at.block < C.blocks(); ++at.block, at.m += 64) {
        apply_gates<C>(p, s.alpha, acc[at.block], at);
#pragma unroll
        for (int i = 0; i < box_count(width, columns); ++i) {
            const int start = box_start(width, i, columns);
            ptx::bar_sync(1 + at.consumer, 128);
            fill_box_16<T, columns>(ptx::shared_address(at.staging), acc[at.block] + start / 2, 1.0f, at);
            ptx::bar_sync(1 + at.consumer, 128);
            copy_gated_rows<columns>(p, s, at.staging, at.m, at.n + start, end, at.batch);
        }
    }
}

}  // namespace hg::sm90
