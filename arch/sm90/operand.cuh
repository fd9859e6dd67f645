// Loads and prefetches of an operand's part of a stage.
//
// In gated kernels the operand along which gates lie has gates in its first half, and in its second half
// what they gate, wherever both lie in memory. So a tile has them at a fixed distance. But where they
// alternate in an operand that is contiguous along N, both halves are as in memory: are_pairs() in
// bias.cuh.
#pragma once

#include "arch/common/ptx/tma.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"

#include <cstdint>

namespace hg::sm90 {

// The row of the tensor map at which the gates of a tile begin, or if half is 1 their up elements. `n`: the
// tile's first column of the product.
__device__ inline int32_t gate_row(const GateLayout& gate, int32_t n, int half)
{
    const int32_t column = n / 2;  // of D
    return column + gate.block.quotient(column) * gate.block.value + half * gate.rows;
}

// Calls load(offset in the operand's part of a stage, row, distance from k) for each box that CTA `index`
// of the Shared CTAs loads which multicast the operand to each other: of two each loads one half. `n`: the
// tile's first row of the operand.
template <int Rows, int Shared, typename Load>
__device__ inline void for_each_gate_box(const GateLayout& gate, int32_t n, int32_t index, Load load)
{
    static_assert(Shared <= 2);
    constexpr int halves = 2 / Shared;
#pragma unroll
    for (int i = 0; i < halves; ++i) {
        const int half = Shared == 2 ? index : i;
        const int32_t row = gate_row(gate, n, half);
#pragma unroll 1
        for (int32_t box = 0; box < gate.boxes; ++box)
            load(half * (Rows / 2 * span_bytes) + box * gate.box_bytes, row + box * gate.box_step,
                 half * gate.k);
    }
}

// The row at which panel `panel` begins of an operand that is contiguous along its rows. `first`: the
// tile's first row. Gated: the panels of a half are gates, or up elements.
template <int Rows, bool Gated>
__device__ inline int32_t panel_row(const GateLayout& gate, int32_t first, int panel)
{
    if constexpr (Gated) {
        constexpr int of_half = Rows / 2 / span_elements;
        if (gate.gate.block != 1)
            return gate_row(gate, first + panel % of_half * 2 * span_elements, panel / of_half);
    }
    return first + panel * span_elements;
}

// Loads a box of an operand into this CTA's stage or, where several CTAs share the operand, into the stage
// of each.
template <int Shared>
__device__ inline void load_box(uint32_t to, const CUtensorMap* map, uint32_t bar, int32_t inner,
                                int32_t outer, int32_t batch, uint32_t ranks, uint64_t policy)
{
    if constexpr (Shared > 1)
        ptx::tma_load_3d_multicast_hint(to, map, bar, inner, outer, batch, static_cast<uint16_t>(ranks),
                                        policy);
    else
        ptx::tma_load_3d_hint(to, map, bar, inner, outer, batch, policy);
}

// Loads an operand's part of a stage, Rows rows from `row` on. Of the Shared CTAs that multicast the
// operand to each other, CTA `index` loads its share for all `ranks`: some of the rows (K-major), or some
// of the K's (MN-major, one box for each 64 rows).
template <int Rows, int Shared, Major M, bool Gated>
__device__ inline void load_operand(const Params& p, const CUtensorMap* map, uint32_t smem, uint32_t bar,
                                    int32_t row, int32_t k, int32_t batch, int32_t index, uint32_t ranks,
                                    uint64_t policy)
{
    if constexpr (Gated && M == Major::K) {
        for_each_gate_box<Rows, Shared>(p.gate, row, index, [&](uint32_t to, int32_t first, int32_t step) {
            load_box<Shared>(smem + to, map, bar, k + step, first, batch, ranks, policy);
        });
    } else if constexpr (M == Major::K) {
        constexpr int share = Rows / Shared;
        load_box<Shared>(smem + index * share * span_bytes, map, bar, k, row + index * share, batch, ranks,
                         policy);
    } else {
        constexpr int share = tile_k / Shared;
#pragma unroll
        for (int panel = 0; panel < round_up(Rows, span_elements) / span_elements; ++panel)
            load_box<Shared>(smem + (panel * tile_k + index * share) * span_bytes, map, bar,
                             panel_row<Rows, Gated>(p.gate, row, panel), k + index * share, batch, ranks,
                             policy);
    }
}

// Prefetches this CTA's share of an operand's part of a stage into L2.
template <int Rows, int Shared, Major M, bool Gated>
__device__ inline void prefetch_operand(const Params& p, const CUtensorMap* map, int32_t row, int32_t k,
                                        int32_t batch, int32_t index)
{
    if constexpr (Gated && M == Major::K) {
        for_each_gate_box<Rows, Shared>(p.gate, row, index, [&](uint32_t, int32_t first, int32_t step) {
            ptx::tma_prefetch_3d(map, k + step, first, batch);
        });
    } else if constexpr (M == Major::K) {
        ptx::tma_prefetch_3d(map, k, row + index * (Rows / Shared), batch);
    } else {
#pragma unroll
        for (int panel = 0; panel < round_up(Rows, span_elements) / span_elements; ++panel)
            ptx::tma_prefetch_3d(map, panel_row<Rows, Gated>(p.gate, row, panel),
                                 k + index * (tile_k / Shared), batch);
    }
}

}  // namespace hg::sm90
