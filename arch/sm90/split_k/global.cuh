// The sum over slices of k that lie anywhere on the device. Each slice owns a part of the tile. All leave
// their sums in global memory, in words that are 0 until they have come and that the owner clears behind
// itself, so that a word says by itself that it is there and nothing else is waited for. An owner does not
// wait for long, since a slice that it waits for may not have started: it then gives up, and the last slice
// to come adds up its part. Terms are added in the order of k either way, so that the bits do not depend on
// timing.
//
//   arrivals[tile]    in global memory, a word that is 0 between kernels: how many slices have come, and
//                     which of them gave up before all had. The last to come clears it.
//   named barrier 1   the consumers of one CTA: the first warp has seen that all slices have come; all of a
//                     part's words have come, or not; a part is staged; what one thread was told.
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

// The words of a tile: for each block, one behind the other, those of each slice.
template <Config C>
struct GlobalPartials {
    static constexpr int threads = 128 * C.consumers;
    uint4* base;  // this thread's
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

// A word that has come is not 0: sums are kept inverted, and of all NaN the one that would be 0 is not
// used.
__device__ inline uint32_t to_word(float v) { return ~min(__float_as_uint(v), 0xfffffffeu); }

template <Config C>
__device__ inline void leave_sums(const GlobalPartials<C>& partials, const float (&acc)[C.tile_n / 2],
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

// Brings a thread's `count` quads to `to`, one behind the other; false if some have not come after `polls`
// looks.
template <Config C>
__device__ inline bool collect(const uint4* from, unsigned char* to, int32_t count, int32_t polls)
{
    constexpr int at_once = 8;
#pragma unroll 1
    for (int32_t first = 0; first < count; first += at_once) {
        uint4 quads[at_once];
        bool come;
        do {
            come = true;
#pragma unroll
            for (int i = 0; i < at_once; ++i)
                quads[i] = first + i < count
                               ? ptx::load_relaxed_gpu_v4(from + (first + i) * GlobalPartials<C>::threads)
                               : make_uint4(1, 1, 1, 1);
#pragma unroll
            for (const uint4& q : quads)
                come = come && q.x && q.y && q.z && q.w;
        } while (!come && --polls > 0);
        if (!come)
            return false;
#pragma unroll
        for (int i = 0; i < at_once; ++i)
            if (first + i < count)
                *reinterpret_cast<uint4*>(to + (first + i) * fragment_bytes(C)) =
                    make_uint4(~quads[i].x, ~quads[i].y, ~quads[i].z, ~quads[i].w);
    }
    return true;
}

template <Config C>
__device__ inline void clear(uint4* from, int32_t count)
{
#pragma unroll 8
    for (int32_t i = 0; i < count; ++i)
        ptx::store_relaxed_gpu_v4(from + i * GlobalPartials<C>::threads, make_uint4(0, 0, 0, 0));
}

// How often is looked, 0.7 us each, for the first word of each slice; for all words then.
constexpr int32_t most_polls = 64, last_polls = 8;

// A word of arrivals: how many came, and a bit for each that gave up.
constexpr uint32_t one_came = 1, came = 0xff, gave_up = 0x100;

// One thread of a slice that has waited in vain: gives up unless all have come by now, in which case the
// word may have been cleared.
__device__ inline bool give_up(uint32_t* arrivals, int32_t split, int32_t slice)
{
    uint32_t word = ptx::load_relaxed_gpu(arrivals);
    while ((word & came) != 0 && static_cast<int32_t>(word & came) != split) {
        const uint32_t before = ptx::atomic_cas_relaxed_gpu(arrivals, word, word | gave_up << slice);
        if (before == word)
            return true;
        word = before;
    }
    return false;
}

// One thread, which tells all consumers of the CTA.
template <Config C, Major MB, typename Question>
__device__ inline uint32_t ask(Smem<C, MB>& smem, Question question)
{
    if (threadIdx.x == 0)
        smem.answer[0] = question();
    ptx::bar_sync(1, 128 * C.consumers);
    return smem.answer[0];
}

// One warp looks whether all slices have begun to leave what the CTA adds up, so that looks are few while
// others still multiply.
template <Config C>
__device__ inline void wait_for_slices(const GlobalPartials<C>& partials, const Part& part)
{
    const auto slice = static_cast<int32_t>(threadIdx.x);
    const bool waits = slice < partials.split && part.blocks() > 0;
    const auto* const word = reinterpret_cast<const uint32_t*>(partials.at(part.first, slice));
    int32_t polls = most_polls;
    bool come;
    do
        come = !waits || ptx::load_relaxed_gpu(word) != 0;
    while (!__all_sync(0xffffffff, come) && --polls > 0);
}

// A part whose sums have come, into the tile.
template <Config C, Type T, Major MB>
__device__ inline void reduce_global_part(const SplitStore<C, T, MB>& out,
                                          const GlobalPartials<C>& partials, const Part& part)
{
    const uint32_t first = ptx::shared_address_once(reduction_inputs<C>(out.smem));
    clear<C>(partials.at(part.first, 0), part.blocks() * partials.split);
    reduce_part(
        out, part, partials.split,
        {first, fragment_bytes(C), static_cast<uint32_t>(partials.split * fragment_bytes(C)), first, -1});
}

// Leaves the slice's sums and brings those of its part; false where it had to give up. `before`: of thread
// 0, who had come until then.
template <Config C, Major MB>
__device__ inline bool exchange_sums(const Params& p, Smem<C, MB>& smem, const GlobalPartials<C>& partials,
                                     const float (&acc)[C.tile_n / 2], const Part& part, uint32_t& before)
{
    uint32_t* const arrivals = p.arrivals + smem.tile;
    leave_sums<C>(partials, acc, smem.slice);
    if (threadIdx.x == 0)
        before = ptx::atomic_add_relaxed_gpu(arrivals, one_came);
    if (threadIdx.x < 32)
        wait_for_slices<C>(partials, part);
    constexpr int32_t threads = 128 * C.consumers;
    ptx::bar_sync(1, threads);
    unsigned char* const inputs = reduction_inputs<C>(smem);
    const int32_t count = part.blocks() * p.split;
    const uint4* const from = partials.at(part.first, 0);
    if (ptx::bar_red_and(1, threads, collect<C>(from, inputs, count, last_polls))) [[likely]]
        return true;
    if (ask<C>(smem, [&] { return give_up(arrivals, p.split, smem.slice); }))
        return false;
    while (!collect<C>(from, inputs, count, INT32_MAX)) {
    }
    return true;
}

// From the slice's sums to its part of the tile, and those of slices that gave up if it was the last to
// come. A single slice has the whole tile.
template <Config C, Type T, Major MB>
__device__ inline void reduce_globally(const SplitStore<C, T, MB>& out, float (&acc)[C.tile_n / 2],
                                       Part part, VectorRows rows)
{
    const Params& p = out.p;
    Smem<C, MB>& smem = out.smem;
    const GlobalPartials<C> partials(p, smem);
    uint32_t before = 0, rescues = 0;
    if (out.is_whole())
        out.stage_all(acc);
    else if (!exchange_sums<C>(p, smem, partials, acc, part, before))
        return;
    for (bool own = true;; own = false) {
        if (part.blocks() > 0) {
            if (!out.is_whole())
                reduce_global_part(out, partials, part);
            if (!out.store_typed(rows))
                out.store_floats(part, rows.count);
        }
        if (out.is_whole())
            return;
        const uint32_t told = ask<C>(smem, [&] {
            if (!own || static_cast<int32_t>(before & came) != p.split - 1)
                return 0u;
            ptx::store_relaxed_gpu(p.arrivals + smem.tile, 0);
            return before / gave_up;
        });
        rescues |= told;
        if (rescues == 0)
            return;
        part = Part::of<C>(p, __ffs(static_cast<int>(rescues)) - 1);
        rows = VectorRows::of<C>(p, smem.at, part);
        rescues &= rescues - 1;
        while (!collect<C>(partials.at(part.first, 0), reduction_inputs<C>(smem), part.blocks() * p.split,
                           INT32_MAX)) {
        }
    }
}

}  // namespace hg::sm90
