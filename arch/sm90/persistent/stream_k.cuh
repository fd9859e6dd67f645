// Stream-K's fix-up: the sum of a tile whose K tiles several clusters have multiplied. A cluster whose run
// of K tiles begins or ends inside a tile stores its partial sums in the workspace and counts itself:
//   arrivals[tile]               contributor -> contributor, in global memory, one word per consumer. The
//                                contributor that finds all others counted adds up the partial sums in the
//                                order of K, stores the tile and sets the word to 0. No contributor waits,
//                                and the bits do not depend on which one is the last.
//   named barrier 1 + consumer   the 128 threads of a consumer, around what one of them has read of the
//                                word.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/scheduler.cuh"

#include <cstdint>

namespace hg::sm90 {

// Where the consumers of a cluster store their partial sums of a tile. A cluster has two slots: the second
// is for a tile in which its run ends but does not begin.
template <Config C>
__device__ inline float4* partial_of(const Params& p, const StreamKRuns& runs, const ClusterCoord& coord,
                                     int32_t tile_begin, int32_t cluster, int consumer_in_tile)
{
    const bool second_slot = runs.begin(cluster) < tile_begin;
    const int64_t slot = (int64_t{2} * cluster + second_slot) * C.ctas() + coord.cta;
    return reinterpret_cast<float4*>(p.partials + (slot * C.consumers_per_tile() + consumer_in_tile) *
                                                      partial_floats(C)) +
           threadIdx.x % 128;
}

// Calls body(accumulators, address) for each block of 64 rows by eight columns: one float4 per thread.
template <Config C, typename Body>
__device__ inline void for_each_quad(Accumulator<C>& acc, float4* at, Body body)
{
#pragma unroll
    for (int block = 0; block < C.blocks(); ++block)
#pragma unroll
        for (int quad = 0; quad < C.tile_n / 8; ++quad)
            body(reinterpret_cast<float(&)[4]>(acc[block][4 * quad]),
                 at + (block * (C.tile_n / 8) + quad) * 128);
}

template <Config C>
__device__ inline void store_partial(Accumulator<C>& acc, float4* at)
{
    for_each_quad<C>(acc, at,
                     [](float(&v)[4], float4* to) { __stcg(to, make_float4(v[0], v[1], v[2], v[3])); });
}

template <Config C>
__device__ inline void load_partial(Accumulator<C>& acc, float4* at)
{
    for_each_quad<C>(acc, at, [](float(&v)[4], const float4* from) {
        const float4 quad = __ldcg(from);
        v[0] = quad.x, v[1] = quad.y, v[2] = quad.z, v[3] = quad.w;
    });
}

template <Config C>
__device__ inline void add_partial(Accumulator<C>& acc, float4* at)
{
    for_each_quad<C>(acc, at, [](float(&v)[4], const float4* from) {
        const float4 quad = __ldcg(from);
        v[0] += quad.x, v[1] += quad.y, v[2] += quad.z, v[3] += quad.w;
    });
}

// The consumer's first thread evaluates `compute`; all its threads get the result.
template <typename Compute>
__device__ inline bool broadcast_from_leader(uint32_t& broadcast, int consumer, Compute compute)
{
    ptx::bar_sync(1 + consumer, 128);
    if (threadIdx.x % 128 == 0)
        broadcast = compute();
    ptx::bar_sync(1 + consumer, 128);
    return broadcast != 0;
}

// Clusters first ... last share a tile. Returns true in the one that has counted all others; its `acc` then
// holds the whole sum.
template <Config C>
__device__ inline bool fix_up(const Params& p, const StreamKRuns& runs, const ClusterCoord& coord,
                              const Work& work, Accumulator<C>& acc, uint32_t& broadcast, int consumer)
{
    const int32_t begin = work.tile * runs.k_tiles;
    const int32_t first = runs.owner(begin), last = runs.owner(begin + runs.k_tiles - 1);
    const auto own = remapped_cluster(p, static_cast<int32_t>(blockIdx.x / C.ctas()));
    const int consumer_in_tile = C.schedule == Schedule::PingPong ? 0 : consumer;
    uint32_t* const arrivals = p.arrivals +
                               (int64_t{work.tile} * C.ctas() + coord.cta) * C.consumers_per_tile() +
                               consumer_in_tile;
    const auto other_contributors = static_cast<uint32_t>(last - first);
    const auto partial = [&](int32_t cluster) {
        return partial_of<C>(p, runs, coord, begin, cluster, consumer_in_tile);
    };

    // As a rule the first cluster comes to the tile last, at the end of its run. It then adds up at once
    // and need not store its own partial sums, which no other cluster would read.
    bool complete = own == first && broadcast_from_leader(broadcast, consumer, [&] {
                        return ptx::load_acquire_gpu(arrivals) == other_contributors;
                    });
    if (!complete) {
        store_partial<C>(acc, partial(own));
        complete = broadcast_from_leader(broadcast, consumer, [&] {
            return ptx::atomic_add_acq_rel_gpu(arrivals, 1) == other_contributors;
        });
    }
    if (!complete)
        return false;
    if (threadIdx.x % 128 == 0)
        *arrivals = 0;
    // The sum of two is the same in either order: the first two contributors may begin with their own
    // accumulators, later ones must begin with the first partial sum.
    const bool starts_with_own = own <= first + 1;
    if (!starts_with_own)
        load_partial<C>(acc, partial(first));
    for (int32_t cluster = starts_with_own ? first : first + 1; cluster <= last; ++cluster)
        if (!starts_with_own || cluster != own)
            add_partial<C>(acc, partial(cluster));
    return true;
}

}  // namespace hg::sm90
