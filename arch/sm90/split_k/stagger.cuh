// How the consumers of a split-K kernel end where the tile has one slice and each stores its own rows: one
// after another, stagger() K tiles apart. Each then has the tensor cores to itself in its last K tiles,
// while those that have ended store.
//
//   named barrier 2 + consumer   the consumer that has issued its last wgmma -> those after it, which have
//                                stagger() K tiles left. It also tells them which stages the consumer no
//                                longer reads.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

constexpr int stagger_barrier = 2, consumer_barrier = 4;

constexpr bool can_stagger(const Config& c) { return stagger(c, Major::K) > 0; }

template <Config C>
__device__ inline bool does_stagger(const Params& p)
{
    return can_stagger(C) && p.staggered;
}

template <Config C, Major MB>
class Stagger {
public:
    // Without K tiles no consumer waits.
    __device__ Stagger(bool staggers, int32_t k_tiles, int consumer)
        : consumer_(consumer), staggers_(staggers && k_tiles > 0),
          waits_at_(consumer > 0 ? max(k_tiles - stagger(C, MB), 0) : k_tiles)
    {
    }

    // Before each K tile.
    __device__ void begin(int32_t k_tile) const
    {
        if (!staggers_ || k_tile != waits_at_)
            return;
#pragma unroll
        for (int earlier = 0; earlier < C.consumers - 1; ++earlier)
            if (earlier < consumer_)
                sync_from(earlier);
    }

    // After the last K tile.
    __device__ void end() const
    {
        if (staggers_ && consumer_ < C.consumers - 1)
            sync_from(consumer_);
    }

    // A stage that no consumer reads any more when this one has multiplied, a different one for each
    // consumer. Consumers that have passed begin() have finished all K tiles but the last stagger() + 1;
    // those that have passed end(), all but the last one. `behind`: the stage after that of the last K
    // tile.
    __device__ int free_stage(int past_end) const
    {
        constexpr int stages = Smem<C, MB>::stages;
        static_assert(stagger(C, MB) == 0 || stagger(C, MB) + C.consumers <= stages);
        const int back = stagger(C, MB) + (consumer_ == 0 ? 2 : consumer_ == C.consumers - 1 ? 1 : 3);
        return past_end - back + (past_end < back ? stages : 0);
    }

private:
    // Consumer `first` and all after it.
    __device__ static void sync_from(int first)
    {
        ptx::bar_sync(stagger_barrier + first, 128 * (C.consumers - first));
    }

    const int consumer_;
    const bool staggers_;
    const int32_t waits_at_;
};

}  // namespace hg::sm90
