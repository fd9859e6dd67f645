// How the consumers of a split kernel end where its tile is not cut into slices and each stores its own
// rows of x: one after the other, lag() k tiles apart. The tensor cores serve one consumer alone in its
// last k tiles, and those that have ended store meanwhile.
//
// Named barrier 2 + consumer: who has issued its last wgmma -> those behind it, which have lag() k tiles
//                             left. Tells it as well what they do not read any more.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

constexpr int stagger_barrier = 2, own_barrier = 4;

constexpr bool may_stagger(const Config& c) { return stagger(c, Major::K) > 0; }

template <Config C>
__device__ inline bool does_stagger(const Params& p)
{
    return may_stagger(C) && p.staggered;
}

template <Config C, Major MB>
class Stagger {
public:
    // Without k tiles nobody waits.
    __device__ Stagger(bool staggers, int32_t k_tiles, int consumer)
        : consumer_(consumer), staggers_(staggers && k_tiles > 0),
          waits_at_(consumer > 0 ? max(k_tiles - stagger(C, MB), 0) : k_tiles)
    {
    }

    // In front of each k tile.
    __device__ void begin(int32_t k_tile) const
    {
        if (!staggers_ || k_tile != waits_at_)
            return;
#pragma unroll
        for (int before = 0; before < C.consumers - 1; ++before)
            if (before < consumer_)
                sync_roles(before);
    }

    // Behind the last one.
    __device__ void end() const
    {
        if (staggers_ && consumer_ < C.consumers - 1)
            sync_roles(consumer_);
    }

    // A stage that nobody reads any more once the product is there, another one for each consumer: all that
    // meet begin() have finished all k tiles but the last lag() + 1, the newest of which is their own, and
    // those that have met end() all but the last one. `behind` is the stage behind that of the last k tile.
    __device__ int free_stage(int behind) const
    {
        constexpr int stages = Smem<C, MB>::stages;
        static_assert(stagger(C, MB) == 0 || stagger(C, MB) + C.consumers <= stages);
        const int back = stagger(C, MB) + (consumer_ == 0 ? 2 : consumer_ == C.consumers - 1 ? 1 : 3);
        return behind - back + (behind < back ? stages : 0);
    }

private:
    // A consumer and all those behind it.
    __device__ static void sync_roles(int first)
    {
        ptx::bar_sync(stagger_barrier + first, 128 * (C.consumers - first));
    }

    const int consumer_;
    const bool staggers_;
    const int32_t waits_at_;
};

}  // namespace hg::sm90
