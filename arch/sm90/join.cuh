// The sum over slices of k, by CTAs anywhere on the device: through the workspace. Each slice leaves its
// sums there, waits for the others and adds up a share of the tile, in the order of k. It does not wait
// for long, since a CTA that it waits for may not have started: if one gives up, all leave but the last to
// come, which adds up the whole tile. So the bits do not depend on timing.
//
//   arrivals[tile]    in global memory, a word that is 0 between kernels: how many slices have left their
//                     sums, how many need the word no more, and whether one gave up before all had come.
//                     The last to need it clears it.
//   arrived           count 1, the arrive that announces the bytes of the others' sums; completes when
//                     they have landed, where the stages were.
//   named barrier 1   the consumers of one CTA: have left their sums; know what the CTA adds up.
#pragma once

#include "arch/common/ptx/global.cuh"
#include "arch/sm90/split_store.cuh"

namespace hg::sm90 {

// The sums of the owned blocks over `count` terms, in their order: number `own` lies in `acc`, the others,
// one behind the other, in shared memory.
template <Config C>
__device__ inline void add_up(float (&acc)[C.y / 2], const unsigned char* terms, const Part& part, int own,
                              int count)
{
    const int step = incoming_step<C>(part.blocks());
    const unsigned char* from = terms + threadIdx.x * 16;
#pragma unroll
    for (int block = 0; block < C.y / 8; ++block) {
        if (!part.has(block))
            continue;
        float sum[4];
        const unsigned char* next = from;
        for (int i = 0; i < count; ++i) {
            float4 term =
                make_float4(acc[4 * block], acc[4 * block + 1], acc[4 * block + 2], acc[4 * block + 3]);
            if (i != own) {
                term = *reinterpret_cast<const float4*>(next);
                next += step;
            }
            const float v[4] = {term.x, term.y, term.z, term.w};
#pragma unroll
            for (int j = 0; j < 4; ++j)
                sum[j] = i == 0 ? v[j] : sum[j] + v[j];
        }
        from += 128 * C.consumers * 16;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            acc[4 * block + j] = sum[j];
    }
}

// Where a slice leaves its sums of the blocks from `block` on.
template <Config C, Major MY>
__device__ inline float4* place_of_sums(const Params& p, const Smem<C, MY>& smem, int slice, int block)
{
    constexpr int threads = 128 * C.consumers, tile_quads = C.x * C.y / 4;
    const int64_t place = int64_t{slice} * p.all_tiles.value + smem.tile;
    return reinterpret_cast<float4*>(p.partials) + place * tile_quads + block * threads;
}

template <Config C, Major MY>
__device__ inline void leave_sums(const Params& p, const float (&acc)[C.y / 2], const Smem<C, MY>& smem)
{
    float4* const to = place_of_sums<C>(p, smem, smem.slice, 0) + threadIdx.x;
#pragma unroll
    for (int block = 0; block < C.y / 8; ++block)
        __stcg(to + block * 128 * C.consumers,
               make_float4(acc[4 * block], acc[4 * block + 1], acc[4 * block + 2], acc[4 * block + 3]));
}

// A word of arrivals.
constexpr uint32_t one_came = 1, one_left = 16, gave_up = 256;

__device__ inline bool all_came(uint32_t word, int32_t split)
{
    return static_cast<int32_t>(word % one_left) == split;
}

// One thread, once the CTA's sums are left: which blocks the CTA adds up, of `all` or of its `share`.
__device__ inline Part wait_for_slices(uint32_t* arrivals, int32_t split, const Part& all,
                                       const Part& share)
{
    constexpr int most_polls = 64;  // of 0.7 us
    uint32_t word = ptx::atomic_add_acq_rel_gpu(arrivals, one_came) + one_came;
    if (all_came(word, split))
        return word & gave_up ? all : share;
    for (int polls = 0; !all_came(word, split) && !(word & gave_up); ++polls) {
        if (polls < most_polls) {
            word = ptx::load_acquire_gpu(arrivals);
            continue;
        }
        const uint32_t before = ptx::atomic_cas_acq_rel_gpu(arrivals, word, word | gave_up);
        word = before == word ? word | gave_up : before;
    }
    return word & gave_up ? Part{0, 0} : share;
}

// The same thread: has the others' sums of these blocks brought to where the stages were.
template <Config C, Major MY>
__device__ inline void fetch_sums(const Params& p, Smem<C, MY>& smem, const Part& part)
{
    ptx::fence_proxy_async_global();
    const auto bytes = static_cast<uint32_t>(incoming_step<C>(part.blocks()));
    const uint32_t arrived = ptx::shared_address(&smem.arrived);
    ptx::mbarrier_arrive_expect_tx(arrived, (p.split - 1) * bytes);
    uint32_t to = ptx::shared_address(smem.stage);
    for (int slice = 0; slice < p.split; ++slice)
        if (slice != smem.slice) {
            ptx::bulk_load(to, place_of_sums<C>(p, smem, slice, part.first), bytes, arrived);
            to += bytes;
        }
}

// From the slice's sums to those of all slices, of the blocks that are returned: its share, as a rule.
template <Config C, Major MY>
__device__ inline Part join_slices(const Params& p, float (&acc)[C.y / 2], Smem<C, MY>& smem,
                                   const Part& share)
{
    constexpr int threads = 128 * C.consumers;
    leave_sums<C>(p, acc, smem);
    ptx::bar_sync(1, threads);
    if (threadIdx.x == 0) {
        uint32_t* const arrivals = p.arrivals + smem.tile;
        const Part part = wait_for_slices(arrivals, p.split, {0, C.y / 8}, share);
        if (part.blocks() > 0)
            fetch_sums<C>(p, smem, part);
        const uint32_t word = ptx::atomic_add_acq_rel_gpu(arrivals, one_left);
        if (static_cast<int32_t>(word % gave_up / one_left) == p.split - 1)
            *arrivals = 0;
        smem.joined[0] = part.first;
        smem.joined[1] = part.last;
    }
    ptx::bar_sync(1, threads);
    const Part part{smem.joined[0], smem.joined[1]};
    if (part.blocks() > 0) {
        ptx::mbarrier_wait_parity(ptx::shared_address(&smem.arrived), 0);
        add_up<C>(acc, smem.stage[0].x, part, smem.slice, p.split);
    }
    return part;
}

}  // namespace hg::sm90
