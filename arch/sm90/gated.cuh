// Loads of gated kernels. The part of B in a stage has gates in its first half, and in its second half what
// they gate, wherever both lie in memory. So each consumer thread has a gate and what it gates in
// registers.
#pragma once

#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"

#include <cstdint>

namespace hg::sm90 {

// The row of the tensor map at which the gates of a tile begin, or if half is 1 what they gate. `n`: the
// tile's first column of the product.
__device__ inline int32_t gate_row(const GateLayout& gate, int32_t n, int half)
{
    const int32_t column = n / 2;  // of D
    return column + gate.block.quotient(column) * gate.block.value + half * gate.rows;
}

// Calls load(offset in the stage's B, row, distance from k) for each box that CTA `index` of the Shared
// CTAs loads which multicast B to each other: of two each loads one half.
template <Config C, int Shared, typename Load>
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
            load(half * (C.tile_n / 2 * span_bytes) + box * gate.box_bytes, row + box * gate.box_step,
                 half * gate.k);
    }
}

}  // namespace hg::sm90
