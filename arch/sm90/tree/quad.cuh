// A quad: up to four leaves of K, whose sums are added pairwise in registers. plan/tree.hpp says what
// leaves are.
#pragma once

#include "arch/common/ring.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

template <Config C, typename Body>
__device__ inline void for_each_sum(Accumulator<C>& acc, const Accumulator<C>& other, Body body)
{
#pragma unroll
    for (int block = 0; block < C.blocks(); ++block)
#pragma unroll
        for (int i = 0; i < C.tile_n / 2; ++i)
            body(acc[block][i], other[block][i]);
}

template <Config C>
__device__ inline void add_right(Accumulator<C>& left, const Accumulator<C>& right)
{
    for_each_sum<C>(left, right, [](float& v, float other) { v = __fadd_rn(v, other); });
}

// What a quad is: 1, 2 or 4 leaves of so many K tiles, in front of `later` K tiles of the same slice.
struct Quad {
    float alpha;
    int32_t leaves, k_tiles, later;
};

// As multiply_tile(), of a quad. alpha times the sum of a leaf is rounded before it is added. Each leaf has
// a loop, and registers, of its own, which are set to 0: registers that are moved, or hold what the quad
// before has left, would be more than there are.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void multiply_quad(Accumulator<C>& first, const Quad& quad, const ClusterCoord& coord,
                                     const Stages<C, MB>& stages, Ring<Smem<C, MB>::stages>& ring,
                                     int first_block)
{
    const auto multiply = [&](Accumulator<C>& acc, int32_t number) {
        for_each_sum<C>(acc, acc, [](float& v, float) { v = 0.0f; });
        multiply_tile<C, T, MA, MB>(
            acc, coord, stages, ring, quad.k_tiles, first_block, [](int32_t) {}, [] {},
            quad.later + (quad.leaves - 1 - number) * quad.k_tiles);
        if (quad.alpha != 1.0f)
            for_each_sum<C>(acc, acc, [&](float& v, float) { v = __fmul_rn(quad.alpha, v); });
    };
    multiply(first, 0);
    if (quad.leaves == 1)
        return;
    Accumulator<C> second, third, fourth;
    multiply(second, 1);
    add_right<C>(first, second);
    if (quad.leaves == 2)
        return;
    multiply(third, 2);
    multiply(fourth, 3);
    add_right<C>(third, fourth);
    add_right<C>(first, third);
}

// The same of a slice's 1, 2, 4, 8 or 16 leaves, max_slice_leaves at most. Sums that wait are moved:
// tiles are small, so that there are registers enough.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void multiply_slice(Accumulator<C>& acc, float alpha, int32_t leaves, int32_t k_tiles,
                                      const ClusterCoord& coord, const Stages<C, MB>& stages,
                                      Ring<Smem<C, MB>::stages>& ring, int consumer)
{
    static_assert(max_slice_leaves == 4 * leaves_of_quad);
    const int32_t quads = max(leaves / leaves_of_quad, 1), of_quad = min(leaves, leaves_of_quad);
    Accumulator<C> one, two;  // quads that wait
#pragma unroll 1
    for (int32_t number = 0; number < quads; ++number) {
        const Quad quad{alpha, of_quad, k_tiles, (quads - 1 - number) * of_quad * k_tiles};
        multiply_quad<C, T, MA, MB>(acc, quad, coord, stages, ring, consumer);
        if (number % 2 == 0) {
            for_each_sum<C>(one, acc, [](float& v, float sum) { v = sum; });
            continue;
        }
        add_right<C>(acc, one);
        if (number % 4 == 1)
            for_each_sum<C>(two, acc, [](float& v, float sum) { v = sum; });
        else
            add_right<C>(acc, two);
    }
}

}  // namespace hg::sm90
