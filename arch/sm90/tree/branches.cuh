// The main loop of a tree kernel: K is cut into leaves, whose sums are added pairwise: plan/tree.hpp. Each
// consumer adds up four leaves, a quad, in registers. Quads and branches of them that wait for their right
// neighbour lie in the workspace, where each thread reads what it has written itself. So there is no
// barrier beside those of the main loop.
#pragma once

#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/stream_k.cuh"
#include "arch/sm90/tree/quad.cuh"

#include <cstdint>

namespace hg::sm90 {

// Where this consumer keeps its sum of 2^level quads, which are sums of four leaves.
template <Config C>
__device__ inline float4* branch_of(const Params& p, int consumer, int level)
{
    const int64_t slot = (int64_t{blockIdx.x} * C.consumers + consumer) * p.stored_levels + level;
    return reinterpret_cast<float4*>(p.partials + slot * partial_floats(C)) + threadIdx.x % 128;
}

// Quad number `quad` is in `acc`. Where bit l of the number is 1, a branch of 2^l quads waits for it.
template <Config C>
__device__ inline void fold_quad(const Params& p, int consumer, int32_t quad, Accumulator<C>& acc)
{
    int level = 0;
#pragma unroll 1
    for (; (quad >> level & 1) != 0; ++level)
        add_partial<C>(acc, branch_of<C>(p, consumer, level));
    if (leaves_of_quad * (quad + 1) < p.leaves)
        store_partial<C>(acc, branch_of<C>(p, consumer, level));
}

// As multiply_tile(), of all leaves; `finish` gets the whole sum.
template <Config C, Type T, Major MA, Major MB, typename Finish>
__device__ inline void multiply_leaves(const Params& p, float alpha, const ClusterCoord& coord,
                                       const Stages<C, MB>& stages, Ring<Smem<C, MB>::stages>& ring,
                                       int32_t k_tiles, int consumer, Finish finish)
{
    const Quad quad{alpha, min(p.leaves, leaves_of_quad), k_tiles / p.leaves, 0};
#pragma unroll 1
    for (int32_t number = 0; leaves_of_quad * number < p.leaves; ++number) {
        Accumulator<C> acc;
        multiply_quad<C, T, MA, MB>(acc, quad, coord, stages, ring, consumer * C.blocks());
        if (p.leaves > leaves_of_quad)
            fold_quad<C>(p, consumer, number, acc);
        if (leaves_of_quad * (number + 1) >= p.leaves)
            finish(acc);
    }
}

}  // namespace hg::sm90
