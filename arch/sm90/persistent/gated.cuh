// Epilogue of the gated kernels: a thread's sums of the first half of a tile's columns are gates of those
// of the second half. TMA stores the tile of D, half as wide.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/epilogue.cuh"
#include "arch/sm90/persistent/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// Replaces the first half of the sums by elements of D.
template <Config C>
__device__ inline void apply_gates(const Params& p, float alpha, float (&acc)[C.tile_n / 2])
{
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
        apply_gates<C>(p, s.alpha, acc[at.block]);
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

}  // namespace hg::sm90
