// The sum over slices of k of a part of a tile: terms in shared memory, brought by split.cuh or join.cuh,
// in the order of the slices, on their way to SplitStore.
#pragma once

#include "arch/sm90/split_store.cuh"

namespace hg::sm90 {

// What a thread adds up lies in its own 16 bytes of each term, behind the tile on its way out.
template <Config C, Major MY>
__device__ inline unsigned char* terms_of(Smem<C, MY>& smem)
{
    return smem.sums + terms_offset(C) + threadIdx.x * 16;
}

// The terms of a part, addresses in shared memory: those of its first block from `first` on, one slice
// `pitch` bytes behind the other, and those of the next block `step` bytes behind. The CTA's own may lie
// apart.
struct Terms {
    uint32_t first, pitch, step, own;
    int32_t own_slice;  // -1: among the others
};

// The sum of the terms of a block, in the order of the slices.
__device__ inline void sum_terms(float (&sum)[4], Terms terms, int32_t split)
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
            const bool mine = slice + i == terms.own_slice;
            // Where there is none any more, one that is there and is not added.
            v[i] = ptx::load_shared_f32x4(mine || slice + i >= split ? terms.own : terms.first);
            terms.first += mine ? 0 : terms.pitch;
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
template <Config C, Type T, Major MY>
__device__ inline void add_up(const SplitStore<C, T, MY>& out, const Part& part, int32_t split, Terms terms)
{
    float sum[4];
    if (!out.is_plain()) [[unlikely]] {
#pragma unroll 1
        for (int32_t block = part.first; block < part.last; ++block) {
            sum_terms(sum, terms, split);
            out.stage(block, sum);
            terms.first += terms.step, terms.own += terms.step;
        }
        return;
    }
    uint32_t to = out.place_of(part.first);
    const uint32_t step = out.step();
#pragma unroll 1
    for (int32_t block = part.first; block < part.last; ++block) {
        sum_terms(sum, terms, split);
        out.store_fragment(to, sum);
        terms.first += terms.step, terms.own += terms.step, to += step;
    }
}

}  // namespace hg::sm90
