// The sum over slices of K of the owned blocks: adds up, in the order of the slices or pairwise, the
// partial sums that kernel.cuh or global.cuh has put into shared memory, and passes them to SplitStore.
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

// The sum of a block as a tree adds up slices that are branches of it: pairwise. The slices are 1, 2, 4
// or 8.
__device__ inline void reduce_block_pairwise(float (&sum)[4], ReductionInputs inputs, int32_t split)
{
    constexpr int most = 8;
    static_assert(most == max_cluster);
    float4 v[most];
#pragma unroll
    for (int slice = 0; slice < most; ++slice) {
        const bool mine = slice == inputs.own_slice || slice >= split;
        v[slice] = ptx::load_shared_f32x4(mine ? inputs.own : inputs.first);
        inputs.first += mine ? 0 : inputs.pitch;
    }
#pragma unroll
    for (int step = 1; step < most; step *= 2)
        if (step < split)
#pragma unroll
            for (int i = 0; i < most; i += 2 * step) {
                v[i].x = __fadd_rn(v[i].x, v[i + step].x);
                v[i].y = __fadd_rn(v[i].y, v[i + step].y);
                v[i].z = __fadd_rn(v[i].z, v[i + step].z);
                v[i].w = __fadd_rn(v[i].w, v[i + step].w);
            }
    sum[0] = v[0].x, sum[1] = v[0].y, sum[2] = v[0].z, sum[3] = v[0].w;
}

// Reduces the owned blocks and stages them for the store.
template <Config C, Type T, Major MB>
__device__ inline void reduce_owned(const SplitStore<C, T, MB>& out, const OwnedBlocks& owned,
                                    int32_t split, ReductionInputs inputs)
{
    const auto reduce_one = [&](float(&sum)[4]) {
        if constexpr (C.tree)
            reduce_block_pairwise(sum, inputs, split);
        else
            reduce_block(sum, inputs, split);
    };
    float sum[4];
    if (!out.is_plain()) [[unlikely]] {
#pragma unroll 1
        for (int32_t block = owned.first; block < owned.last; ++block) {
            reduce_one(sum);
            out.stage(block, sum);
            inputs.first += inputs.step, inputs.own += inputs.step;
        }
        return;
    }
    uint32_t to = out.block_address(owned.first);
    const uint32_t step = out.step();
#pragma unroll 1
    for (int32_t block = owned.first; block < owned.last; ++block) {
        reduce_one(sum);
        out.store_fragment(to, sum);
        inputs.first += inputs.step, inputs.own += inputs.step, to += step;
    }
}

}  // namespace hg::sm90
