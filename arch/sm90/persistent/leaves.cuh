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

// As multiply_tile(), of all leaves; `finish` gets the whole sum. alpha times the sum of a leaf is rounded
// before it is added. Each leaf of four has a loop, and registers, of its own, which are set to 0:
// registers that are moved, or hold what the quad before has left, would be more than there are.
template <Config C, Type T, Major MA, Major MB, typename Finish>
__device__ inline void multiply_leaves(const Params& p, float alpha, const ClusterCoord& coord,
                                       const Stages<C, MB>& stages, Ring<Smem<C, MB>::stages>& ring,
                                       Lead<C, MB>& lead, int32_t k_tiles, int consumer, Finish finish)
{
    const int32_t leaf_k_tiles = k_tiles / p.leaves;
    const auto multiply = [&](Accumulator<C>& acc, auto begin) {
        for_each_sum<C>(acc, acc, [](float& v, float) { v = 0.0f; });
        multiply_tile<C, T, MA, MB>(acc, coord, stages, ring, leaf_k_tiles, consumer * C.blocks(), begin,
                                    [] {});
        if (alpha != 1.0f)
            for_each_sum<C>(acc, acc, [&](float& v, float) { v = __fmul_rn(alpha, v); });
    };
    const auto none = [](int32_t) {};
#pragma unroll 1
    for (int32_t quad = 0; leaves_of_quad * quad < p.leaves; ++quad) {
        Accumulator<C> first, second, third, fourth;
        multiply(first, [&](int32_t k_tile) {
            if (quad == 0)
                lead.begin(k_tile, leaf_k_tiles);
        });
        multiply(second, none);
        add_right<C>(first, second);
        if (p.leaves > 2) {
            multiply(third, none);
            multiply(fourth, none);
            add_right<C>(third, fourth);
            add_right<C>(first, third);
            fold_quad<C>(p, consumer, quad, first);
        }
        if (leaves_of_quad * (quad + 1) >= p.leaves)
            finish(first);
    }
}

}  // namespace hg::sm90
