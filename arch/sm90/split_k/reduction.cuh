// The sum over slices of K of the owned blocks: adds up, in the order of the slices, the partial sums that
// kernel.cuh or global.cuh has put into shared memory, and passes them to SplitStore.
#pragma once

#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/epilogue.cuh"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// Where a thread's 16 bytes of the first fragment lie: the inputs of the reduction are behind the staged
// tile.
template <Config C, Major MB>
__device__ inline unsigned char* reduction_inputs(Smem<C, MB>& smem)
{
    return smem.sums + reduction_offset(C) + threadIdx.x * 16;
}

// Shared addresses of the partial sums of the owned blocks: `first` of the first block and slice, the next
// slice `pitch` bytes further, the next block `step` bytes further. With SplitK the CTA's own partial sums
// lie elsewhere, at `own`.
struct ReductionInputs {
    uint32_t first, pitch, step, own;
    int32_t own_slice;  // -1: `own` is not used
};

// The sum of a block in the order of the slices.
__device__ inline void reduce_block(float (&sum)[4], ReductionInputs inputs, int32_t split)
{
    constexpr int at_once = 4;
#pragma unroll
    for (float& v : sum)
        v = -0.0f;  // the neutral element: 0.0 would turn -0.0 into 0.0
#pragma unroll 1
    for (int32_t slice = 0; slice < split; slice += at_once) {
        float4 v[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            const bool mine = slice + i == inputs.own_slice;
            // Past the last slice it loads `own`, which is there, and does not add it.
            v[i] = ptx::load_shared_f32x4(mine || slice + i >= split ? inputs.own : inputs.first);
            inputs.first += mine ? 0 : inputs.pitch;
        }
#pragma unroll
        for (int i = 0; i < at_once; ++i)
            if (slice + i < split) {
                sum[0] += v[i].x;
                sum[1] += v[i].y;
                sum[2] += v[i].z;
                sum[3] += v[i].w;
            }
    }
}

// Reduces the owned blocks and stages them for the store.
template <Config C, Type T, Major MB>
__device__ inline void reduce_owned(const SplitStore<C, T, MB>& out, const OwnedBlocks& owned,
                                    int32_t split, ReductionInputs inputs)
{
    float sum[4];
    if (!out.is_plain()) [[unlikely]] {
#pragma unroll 1
        for (int32_t block = owned.first; block < owned.last; ++block) {
            reduce_block(sum, inputs, split);
            out.stage(block, sum);
            inputs.first += inputs.step, inputs.own += inputs.step;
        }
        return;
    }
    uint32_t to = out.block_address(owned.first);
    const uint32_t step = out.step();
#pragma unroll 1
    for (int32_t block = owned.first; block < owned.last; ++block) {
        reduce_block(sum, inputs, split);
        out.store_fragment(to, sum);
        inputs.first += inputs.step, inputs.own += inputs.step, to += step;
    }
}

}  // namespace hg::sm90
