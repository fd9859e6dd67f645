// The reduction of SplitKGlobal, whose slices of K run on any CTAs of the device. Each slice owns some
// blocks of the tile. All slices store their partial sums in global memory, in words that are 0 until then
// and that the owner clears after reading: a word that is not 0 is valid by itself, and no flag or fence is
// needed. An owner must not wait long, since a slice that it waits for may not have started. It then gives
// up, and the last slice to arrive reduces its blocks too. Either way the partial sums are added in the
// order of K, so that the bits do not depend on timing.
//
//   arrivals[tile]    in global memory, 0 between kernels: how many slices have stored their partial sums,
//                     and which of them gave up before all had. The last slice to arrive clears it.
//   named barrier 1   the consumers of one CTA: the first warp has seen that all slices have begun to
//                     store; the words of the owned blocks are complete, or not; the blocks are staged; one
//                     thread's value has been broadcast.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/epilogue.cuh"
#include "arch/sm90/split_k/reduction.cuh"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// The partial sums of a tile in global memory: for each block the words of each slice, in order.
template <Config C>
struct GlobalPartials {
    static constexpr int threads = 128 * C.consumers;
    uint4* base;  // of this thread
    int32_t split;

    template <Major MB>
    __device__ GlobalPartials(const Params& p, const Smem<C, MB>& smem)
        : base(reinterpret_cast<uint4*>(p.partials) +
               int64_t{smem.tile} * p.split * (C.tile_m * C.tile_n / 4) + threadIdx.x),
          split(p.split)
    {
    }

    __device__ uint4* at(int32_t block, int32_t slice) const
    {
        return base + (block * split + slice) * threads;
    }
};

// A partial sum as a word that is never 0: bits are stored inverted, and the one NaN whose inverse is 0 is
// replaced by another.
__device__ inline uint32_t to_word(float v) { return ~min(__float_as_uint(v), 0xfffffffeu); }

template <Config C>
__device__ inline void store_partials(const GlobalPartials<C>& partials, const float (&acc)[C.tile_n / 2],
                                      int32_t slice)
{
    uint4* to = partials.at(0, slice);
#pragma unroll
    for (int block = 0; block < C.tile_n / 8; ++block, to += partials.split * partials.threads) {
        const float* v = acc + 4 * block;
        ptx::store_relaxed_gpu_v4(to,
                                  make_uint4(to_word(v[0]), to_word(v[1]), to_word(v[2]), to_word(v[3])));
    }
}

// Loads a thread's `count` quads of partial sums to consecutive fragments at `to`; returns false if some
// are still missing after `polls` loads.
template <Config C, int AtOnce>
__device__ inline bool poll_partials(const uint4* from, unsigned char* to, int32_t count, int32_t polls)
{
#pragma unroll 1
    for (int32_t first = 0; first < count; first += AtOnce) {
        uint4 quads[AtOnce];
        bool complete;
        do {
            complete = true;
#pragma unroll
            for (int i = 0; i < AtOnce; ++i)
                quads[i] = first + i < count
                               ? ptx::load_relaxed_gpu_v4(from + (first + i) * GlobalPartials<C>::threads)
                               : make_uint4(1, 1, 1, 1);
#pragma unroll
            for (const uint4& q : quads)
                complete = complete && q.x && q.y && q.z && q.w;
        } while (!complete && --polls > 0);
        if (!complete)
            return false;
#pragma unroll
        for (int i = 0; i < AtOnce; ++i)
            if (first + i < count)
                *reinterpret_cast<uint4*>(to + (first + i) * fragment_bytes(C)) =
                    make_uint4(~quads[i].x, ~quads[i].y, ~quads[i].z, ~quads[i].w);
    }
    return true;
}

// Many slices are loaded sixteen at a time: each round takes 0.7 us.
template <Config C>
__device__ inline bool load_partials(const GlobalPartials<C>& partials, const OwnedBlocks& owned,
                                     unsigned char* to, int32_t polls)
{
    const uint4* const from = partials.at(owned.first, 0);
    const int32_t count = owned.blocks() * partials.split;
    if constexpr (most_slices(C) > few_slices)
        if (partials.split > few_slices)
            return poll_partials<C, 16>(from, to, count, polls);
    return poll_partials<C, 8>(from, to, count, polls);
}

template <Config C>
__device__ inline void clear_partials(uint4* from, int32_t count)
{
#pragma unroll 8
    for (int32_t i = 0; i < count; ++i)
        ptx::store_relaxed_gpu_v4(from + i * GlobalPartials<C>::threads, make_uint4(0, 0, 0, 0));
}

// How often a waiting CTA loads, 0.7 us each time: the first word of each slice, then all words.
constexpr int32_t max_polls = 64, max_polls_after_start = 8;

// The same once all slices have stored: a few suffice, unless another launch uses the same words at the
// same time, which hgemm.h forbids, and has cleared them. D is wrong then, but the kernel ends.
constexpr int32_t max_polls_after_arrival = 1 << 17;

// A word of `arrivals`: the count of slices in the low byte, then a bit for each slice that gave up, which
// are slices that own blocks.
constexpr uint32_t one_arrival = 1, arrival_mask = 0xff, gave_up_bit = 0x100;
constexpr int max_owners = 24;
static_assert(max_slices <= arrival_mask);

// One thread of an owner whose partial sums are not complete. Returns false if all slices have arrived by
// now; the last of them may already have cleared the word.
__device__ inline bool give_up(uint32_t* arrivals, int32_t split, int32_t slice)
{
    uint32_t word = ptx::load_relaxed_gpu(arrivals);
    while ((word & arrival_mask) != 0 && static_cast<int32_t>(word & arrival_mask) != split) {
        const uint32_t seen = ptx::atomic_cas_relaxed_gpu(arrivals, word, word | gave_up_bit << slice);
        if (seen == word)
            return true;
        word = seen;
    }
    return false;
}

// Thread 0 evaluates `compute`; all consumers of the CTA get the result.
template <Config C, Major MB, typename Compute>
__device__ inline uint32_t broadcast_from_leader(Smem<C, MB>& smem, Compute compute)
{
    if (threadIdx.x == 0)
        smem.broadcast[0] = compute();
    ptx::bar_sync(1, 128 * C.consumers);
    return smem.broadcast[0];
}

// One warp waits until all slices have begun to store the blocks that the CTA owns, so that polling costs
// little bandwidth while others still multiply.
template <Config C>
__device__ inline void wait_for_slices(const GlobalPartials<C>& partials, const OwnedBlocks& owned)
{
    const int32_t first = owned.blocks() > 0 ? static_cast<int32_t>(threadIdx.x) : partials.split;
    int32_t polls = max_polls;
    bool complete;
    do {
        complete = true;
        for (int32_t slice = first; slice < partials.split; slice += 32) {
            const auto* const word = reinterpret_cast<const uint32_t*>(partials.at(owned.first, slice));
            complete = complete && ptx::load_relaxed_gpu(word) != 0;
        }
    } while (!__all_sync(0xffffffff, complete) && --polls > 0);
}

// Reduces owned blocks whose partial sums are complete, and stages them.
template <Config C, Type T, Major MB>
__device__ inline void reduce_global_owned(const SplitStore<C, T, MB>& out,
                                           const GlobalPartials<C>& partials, const OwnedBlocks& owned)
{
    const uint32_t first = ptx::shared_address_once(reduction_inputs<C>(out.smem));
    clear_partials<C>(partials.at(owned.first, 0), owned.blocks() * partials.split);
    reduce_owned(
        out, owned, partials.split,
        {first, fragment_bytes(C), static_cast<uint32_t>(partials.split * fragment_bytes(C)), first, -1});
}

// Stores the slice's partial sums and loads those of its owned blocks; returns false if it gave up.
// `arrivals_before`: in thread 0, the word of `arrivals` as this slice found it.
template <Config C, Major MB>
__device__ inline bool
exchange_partials(const Params& p, Smem<C, MB>& smem, const GlobalPartials<C>& partials,
                  const float (&acc)[C.tile_n / 2], const OwnedBlocks& owned, uint32_t& arrivals_before)
{
    uint32_t* const arrivals = p.arrivals + smem.tile;
    store_partials<C>(partials, acc, smem.slice);
    if (threadIdx.x == 0)
        arrivals_before = ptx::atomic_add_relaxed_gpu(arrivals, one_arrival);
    if (threadIdx.x < 32)
        wait_for_slices<C>(partials, owned);
    constexpr int32_t threads = 128 * C.consumers;
    ptx::bar_sync(1, threads);
    unsigned char* const inputs = reduction_inputs<C>(smem);
    if (ptx::bar_red_and(1, threads, load_partials(partials, owned, inputs, max_polls_after_start)))
        [[likely]]
        return true;
    if (broadcast_from_leader<C>(smem, [&] { return give_up(arrivals, p.split, smem.slice); }))
        return false;
    load_partials(partials, owned, inputs, max_polls_after_arrival);
    return true;
}

// From the slice's partial sums to its owned blocks of D, and to those of the slices that gave up, if this
// slice was the last to arrive. A single slice owns the whole tile.
template <Config C, Type T, Major MB>
__device__ inline void reduce_global(const SplitStore<C, T, MB>& out, float (&acc)[C.tile_n / 2],
                                     OwnedBlocks owned, VectorRows rows)
{
    static_assert(C.tile_n / 8 <= max_owners);
    const Params& p = out.p;
    Smem<C, MB>& smem = out.smem;
    const GlobalPartials<C> partials(p, smem);
    uint32_t arrivals_before = 0, abandoned = 0;
    if (out.is_unsplit())
        out.stage_all(acc);
    else if (!exchange_partials<C>(p, smem, partials, acc, owned, arrivals_before))
        return;
    for (bool own = true;; own = false) {
        if (owned.blocks() > 0) {
            if (!out.is_unsplit())
                reduce_global_owned(out, partials, owned);
            if (!out.store_typed(rows))
                out.store_floats(owned, rows.count);
        }
        if (out.is_unsplit())
            return;
        const uint32_t newly_abandoned = broadcast_from_leader<C>(smem, [&] {
            if (!own || static_cast<int32_t>(arrivals_before & arrival_mask) != p.split - 1)
                return 0u;
            ptx::store_relaxed_gpu(p.arrivals + smem.tile, 0);
            return arrivals_before / gave_up_bit;
        });
        abandoned |= newly_abandoned;
        if (abandoned == 0)
            return;
        owned = OwnedBlocks::of<C>(p, __ffs(static_cast<int>(abandoned)) - 1);
        rows = VectorRows::of<C>(p, smem, owned);
        abandoned &= abandoned - 1;
        load_partials(partials, owned, reduction_inputs<C>(smem), max_polls_after_arrival);
    }
}

}  // namespace hg::sm90
