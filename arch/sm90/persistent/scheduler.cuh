// How the tiles of a persistent kernel fall to the clusters, and the sum of a tile that several share.
//
// Whole tiles go round: cluster i takes tiles i, i + clusters, ... Long products hand them out instead, in
// the order in which clusters get to them: GPCs do not run at the same clock, so that tiles in flight would
// drift apart, and no longer find in L2 what others have just read, and the slowest would end last. Before
// its turn, a consumer of the first CTA of a cluster fetches the number of the tile behind its own, and
// tells all CTAs:
//   announced[i % announcements]   consumer of the first CTA -> all roles of each CTA of the cluster.
//              Count 1: the arrive of the CTA's own consumer, with the four bytes that it waits for. Nobody
//              says that he has read a number: who sends that of tile i + 1 has multiplied tile i - 2, of
//              more k tiles than all stages between two CTAs have room for, so that all CTAs have begun to,
//              and all roles have read the number of tile i - 3.
//   handed     cluster -> cluster, in global memory: numbers fetched. Whoever fetches the last one, one
//              behind the end for each cluster, sets it back to 0.
//
// Where whole tiles would leave some clusters idle at the end, the first Params::stream_tiles tiles are
// streamed: their k tiles, laid end to end, are cut into one run of equal length for each cluster. A run
// that begins or ends inside a tile leaves its sums in the workspace, and says so:
//   arrivals[tile]   contributor -> contributor, in global memory, one word a consumer. Whoever finds that
//                    all others have arrived adds up, in the order of k, and stores the tile. So nobody
//                    waits, and the bits do not depend on who comes last. The word goes back to 0.
// Named barrier 1 + consumer: the 128 threads of a consumer, around the word's answer.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstddef>
#include <cstdint>

namespace hg::sm90 {

// The k tiles first ... last - 1 of a tile.
struct Work {
    TileCoord at;
    int32_t tile, first, last;

    __device__ int32_t k_tiles() const { return last - first; }
};

// The k tiles of all streamed tiles, end to end. choose() sees to it that 32 bits are enough.
struct Stream {
    int32_t k_tiles, clusters, length;

    template <Config C>
    __device__ static Stream of(const Params& p, int32_t k_tiles)
    {
        return {k_tiles, static_cast<int32_t>(gridDim.x / C.ctas()), p.stream_tiles * k_tiles};
    }

    // Where the run of a cluster begins; that of the one before it ends there.
    __device__ int32_t begin(int32_t cluster) const { return length * cluster / clusters; }
    // The cluster whose run has this k tile.
    __device__ int32_t owner(int32_t i) const { return ((i + 1) * clusters - 1) / length; }
};

// The numbers of the tiles that a cluster is handed, on their way to all roles of its CTAs.
template <Config C, Major MB>
class TileQueue {
public:
    // `smem`: shared address of Smem.
    __device__ explicit TileQueue(uint32_t smem) : smem_(smem) {}

    // A thread of the consumer, in each CTA: the next number will come.
    __device__ void expect() const { ptx::mbarrier_arrive_expect_tx(full(), 4); }
    // And the one that sends it.
    __device__ void send(uint32_t tile) const
    {
#pragma unroll
        for (int rank = 0; rank < C.ctas(); ++rank)
            ptx::store_async_u32(ptx::map_shared(number(), rank), tile, ptx::map_shared(full(), rank));
    }
    __device__ int32_t read()
    {
        ptx::mbarrier_wait_parity(full(), read_ / tile_slots % 2);
        const auto tile = static_cast<int32_t>(ptx::load_shared_u32(number()));
        ++read_;
        return uniform(tile);
    }

private:
    using Layout = Smem<C, MB>;
    uint32_t smem_, read_ = 0;

    __device__ uint32_t full() const
    {
        return smem_ + offsetof(Layout, tile_full) + read_ % tile_slots * 8;
    }
    __device__ uint32_t number() const
    {
        return smem_ + offsetof(Layout, next_tile) + read_ % tile_slots * 4;
    }
};

// Hands out a run of streamed k tiles, then whole tiles.
template <Config C, Major MB>
class Scheduler {
public:
    // `smem`: shared address of Smem.
    __device__ Scheduler(const Params& p, const ClusterCoord& coord, int32_t k_tiles, uint32_t smem)
        : p_(p), coord_(coord), stream_(Stream::of<C>(p, k_tiles)), numbers_(smem),
          tile_(remapped_cluster(p, static_cast<int32_t>(blockIdx.x / C.ctas()))),
          dynamic_(can_schedule_dynamically(C) && p.tile_counter && k_tiles > 0)
    {
        if (stream_.length > 0) {
            i_ = stream_.begin(tile_), end_ = stream_.begin(tile_ + 1);
            tile_ += p.stream_tiles;
        }
    }

    // False where nothing is left. Whole warps.
    __device__ bool next(Work& work)
    {
        const bool stream_k = i_ < end_;
        if (dynamic_ && !stream_k && tile_ == unknown)
            tile_ = numbers_.read();
        if (!stream_k && tile_ >= p_.tiles)
            return false;
        work = {{}, tile_, 0, stream_.k_tiles};
        if (stream_k) {
            work.tile = i_ / stream_.k_tiles;
            work.first = i_ - work.tile * stream_.k_tiles;
            work.last = min(stream_.k_tiles, work.first + end_ - i_);
            i_ += work.k_tiles();
        } else {
            tile_ = dynamic_ ? unknown : tile_ + stream_.clusters;
        }
        work.at = position_of<C>(p_, coord_, work.tile);
        return true;
    }

    // A thread of the consumer that multiplies what next() has just said.
    __device__ void fetch_next() const
    {
        if (!dynamic_ || tile_ != unknown)
            return;
        numbers_.expect();
        if (coord_.cta != 0)
            return;
        const uint32_t fetched = ptx::atomic_add_relaxed_gpu(p_.tile_counter, 1);
        if (fetched + 1 == static_cast<uint32_t>(p_.tiles - p_.stream_tiles))
            ptx::store_relaxed_gpu(p_.tile_counter, 0);
        numbers_.send(fetched + p_.stream_tiles + stream_.clusters);
    }

private:
    static constexpr int32_t unknown = -1;

    const Params& p_;
    const ClusterCoord coord_;
    const Stream stream_;
    TileQueue<C, MB> numbers_;
    int32_t i_ = 0, end_ = 0, tile_;
    const bool dynamic_;
};

// For consumers: around a body that is no function ptxas moves accumulators, and then waits for each wgmma.
template <Config C, Major MB, typename Body>
__device__ inline void for_each_work(Scheduler<C, MB> scheduler, Body body)
{
    for (Work work; scheduler.next(work);)
        body(work, scheduler);
}

}  // namespace hg::sm90
