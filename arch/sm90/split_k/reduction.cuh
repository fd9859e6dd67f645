// The sum over slices of k of a part of a tile: terms in shared memory, brought by split.cuh or join.cuh,
// in the order of the slices, on their way to SplitStore.
#pragma once

#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/epilogue.cuh"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// What a thread adds up lies in its own 16 bytes of each term, behind the tile on its way out.
template <Config C, Major MB>
__device__ inline unsigned char* reduction_inputs(Smem<C, MB>& smem)
{
    return smem.sums + reduction_offset(C) + threadIdx.x * 16;
}

// The terms of a part, addresses in shared memory: those of its first block from `first` on, one slice
// `pitch` bytes behind the other, and those of the next block `step` bytes behind. The CTA's own may lie
// apart.
struct ReductionInputs {
    uint32_t first, pitch, step, own;
    int32_t own_slice;  // -1: among the others
};

// The sum of the terms of a block, in the order of the slices.
__device__ inline void reduce_block(float (&sum)[4], ReductionInputs inputs, int32_t split)
{
    constexpr int at_once = 4;
#pragma unroll
    for (float& v : sum)
        v = -0.0f;  // to which adding changes nothing
#pragma unroll 1
    for (int32_t slice = 0; slice < split; slice += at_once) {
        float4 v[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            const bool mine = slice + i == inputs.own_slice;
            // Where there is none any more, one that is there and is not added.
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

// The sums of a part over all slices into the tile.
template <Config C, Type T, Major MB>
__device__ inline void reduce_part(const SplitStore<C, T, MB>& out, const Part& part, int32_t split,
                                   ReductionInputs inputs)
{
    float sum[4];
    if (!out.is_plain()) [[unlikely]] {
#pragma unroll 1
        for (int32_t block = part.first; block < part.last; ++block) {
            reduce_block(sum, inputs, split);
            out.stage(block, sum);
            inputs.first += inputs.step, inputs.own += inputs.step;
        }
        return;
    }
    uint32_t to = out.place_of(part.first);
    const uint32_t step = out.step();
#pragma unroll 1
    for (int32_t block = part.first; block < part.last; ++block) {
        reduce_block(sum, inputs, split);
        out.store_fragment(to, sum);
        inputs.first += inputs.step, inputs.own += inputs.step, to += step;
    }
}

}  // namespace hg::sm90
