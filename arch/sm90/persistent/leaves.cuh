// The main loop of a tree kernel: K is cut into leaves, whose sums are added pairwise: plan/tree.hpp. Each
// consumer adds up four leaves, a quad, in registers. Quads and branches of them that wait for their right
// neighbour lie in the workspace, where each thread reads what it has written itself.
//   mma_order[1]   consumer 0 -> consumer 1. Count 4: a lane of each warp, some K tiles after the start of
//                  a tile. Consumer 1 begins the tile then. So the two are apart, and while one adds or
//                  stores the other has the tensor cores to itself. Since they share the stages, consumer 0
//                  arrives for a tile only when consumer 1 has begun the one before.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/leaves.cuh"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/stream_k.cuh"
#include "arch/sm90/smem.hpp"

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

template <Config C, Major MB>
class Lead {
public:
    __device__ Lead(Smem<C, MB>& smem, int consumer)
        : consumer_(consumer), barrier_(ptx::shared_address(&smem.mma_order[1]))
    {
    }

    // Before each K tile of the first leaf.
    __device__ void begin(int32_t k_tile, int32_t leaf_k_tiles)
    {
        constexpr int32_t lead = 4;
        static_assert(lead < Smem<C, MB>::stages);
        if (consumer_ == 0 && k_tile == min(lead, leaf_k_tiles - 1) && threadIdx.x % 32 == 0)
            ptx::mbarrier_arrive(barrier_);
        if (consumer_ == 1 && k_tile == 0) {
            ptx::mbarrier_wait_parity(barrier_, phase_);
            phase_ ^= 1;
        }
    }

private:
    const int consumer_;
    const uint32_t barrier_;
    uint32_t phase_ = 0;
};

// As multiply_tile(), of all leaves; `finish` gets the whole sum.
template <Config C, Type T, Major MA, Major MB, typename Finish>
__device__ inline void multiply_leaves(const Params& p, float alpha, const ClusterCoord& coord,
                                       const Stages<C, MB>& stages, Ring<Smem<C, MB>::stages>& ring,
                                       Lead<C, MB>& lead, int32_t k_tiles, int consumer, Finish finish)
{
    const Quad quad{alpha, min(p.leaves, leaves_of_quad), k_tiles / p.leaves, 0};
#pragma unroll 1
    for (int32_t number = 0; leaves_of_quad * number < p.leaves; ++number) {
        Accumulator<C> acc;
        multiply_quad<C, T, MA, MB>(acc, quad, coord, stages, ring, consumer * C.blocks(), [&](int32_t i) {
            if (number == 0)
                lead.begin(i, quad.k_tiles);
        });
        if (p.leaves > leaves_of_quad)
            fold_quad<C>(p, consumer, number, acc);
        if (leaves_of_quad * (number + 1) >= p.leaves)
            finish(acc);
    }
}

}  // namespace hg::sm90
