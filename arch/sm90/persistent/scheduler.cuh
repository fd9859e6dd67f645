// The scheduler of the persistent kernels: which cluster computes which tiles.
//
// Static: cluster i computes tiles i, i + clusters, ... Dynamic, for long problems: clusters fetch tile
// indices from a global counter. The GPCs' clocks differ, so that with a static schedule the tiles in
// flight drift apart, no longer reuse each other's operands in L2, and the slowest GPC ends late. The
// consumer that is about to multiply a tile in the first CTA of a cluster fetches the index of the next
// tile and sends it to all CTAs of the cluster:
//   tile_full[i % tile_slots]   consumer of the first CTA -> all roles of each CTA of the cluster. Count 1:
//                               the arrive of the CTA's own consumer, which expects the four bytes of the
//                               index. No "empty" barrier is needed: the consumer that sends the index of
//                               tile i + 1 has finished tile i - 2. That tile has more K tiles than the
//                               stages of the cluster's CTAs can hold, so that every CTA has begun it and
//                               every role has read the index of tile i - 3.
//   tile_counter                all clusters, in global memory: indices fetched. Each cluster fetches one
//                               index past the end; the cluster that fetches the last of these sets the
//                               counter to 0.
//
// Stream-K: where whole tiles would leave some clusters idle at the end, the clusters share the first
// Params::stream_k_tiles tiles evenly. Their K tiles, laid end to end, are cut into one run of equal length
// per cluster: see stream_k.cuh for the sum of a tile that several clusters share.
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

// K tiles first ... last - 1 of a tile.
struct Work {
    TileCoord at;
    int32_t tile, first, last;

    __device__ int32_t k_tiles() const { return last - first; }
};

// The K tiles of all stream-K tiles, laid end to end, and the runs of them that clusters multiply. choose()
// makes sure that 32 bits are enough.
struct StreamKRuns {
    int32_t k_tiles, clusters, length;

    template <Config C>
    __device__ static StreamKRuns of(const Params& p, int32_t k_tiles)
    {
        return {k_tiles, static_cast<int32_t>(gridDim.x / C.ctas()), p.stream_k_tiles * k_tiles};
    }

    // Where the run of a cluster begins; the run of the cluster before it ends there.
    __device__ int32_t begin(int32_t cluster) const { return length * cluster / clusters; }
    // The cluster whose run contains this K tile.
    __device__ int32_t owner(int32_t i) const { return ((i + 1) * clusters - 1) / length; }
};

// The ring of tile indices that one consumer of a cluster sends to all roles of its CTAs.
template <Config C, Major MB>
class TileQueue {
public:
    // `smem`: shared address of Smem.
    __device__ explicit TileQueue(uint32_t smem) : smem_(smem) {}

    // One thread in each CTA, of the consumer that multiplies the current tile: expects the next index.
    __device__ void expect() const { ptx::mbarrier_arrive_expect_tx(full(), 4); }
    // The same thread of the first CTA then sends the index to every CTA of the cluster.
    __device__ void send(uint32_t tile) const
    {
#pragma unroll
        for (int rank = 0; rank < C.ctas(); ++rank)
            ptx::store_async_u32(ptx::map_shared(slot(), rank), tile, ptx::map_shared(full(), rank));
    }
    __device__ int32_t read()
    {
        ptx::mbarrier_wait_parity(full(), read_ / tile_slots % 2);
        const auto tile = static_cast<int32_t>(ptx::load_shared_u32(slot()));
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
    __device__ uint32_t slot() const
    {
        return smem_ + offsetof(Layout, next_tile) + read_ % tile_slots * 4;
    }
};

// Gives a role the work of its cluster: first the run of stream-K tiles, then whole tiles.
template <Config C, Major MB>
class Scheduler {
public:
    // `smem`: shared address of Smem.
    __device__ Scheduler(const Params& p, const ClusterCoord& coord, int32_t k_tiles, uint32_t smem)
        : p_(p), coord_(coord), runs_(StreamKRuns::of<C>(p, k_tiles)), queue_(smem),
          tile_(remapped_cluster(p, static_cast<int32_t>(blockIdx.x / C.ctas()))),
          dynamic_(can_schedule_dynamically(C) && p.tile_counter && k_tiles > 0)
    {
        if (runs_.length > 0) {
            i_ = runs_.begin(tile_), end_ = runs_.begin(tile_ + 1);
            tile_ += p.stream_k_tiles;
        }
    }

    // False at the end. Called by whole warps.
    __device__ bool next(Work& work)
    {
        const bool in_run = i_ < end_;
        if (dynamic_ && !in_run && tile_ == unknown)
            tile_ = queue_.read();
        if (!in_run && tile_ >= p_.tiles)
            return false;
        work = {{}, tile_, 0, runs_.k_tiles};
        if (in_run) {
            work.tile = i_ / runs_.k_tiles;
            work.first = i_ - work.tile * runs_.k_tiles;
            work.last = min(runs_.k_tiles, work.first + end_ - i_);
            i_ += work.k_tiles();
        } else {
            tile_ = dynamic_ ? unknown : tile_ + runs_.clusters;
        }
        work.at = tile_coord<C>(p_, coord_, work.tile);
        return true;
    }

    // One thread of the consumer that multiplies what next() has just returned fetches the tile after it.
    __device__ void fetch_next() const
    {
        if (!dynamic_ || tile_ != unknown)
            return;
        queue_.expect();
        if (coord_.cta != 0)
            return;
        const uint32_t fetched = ptx::atomic_add_relaxed_gpu(p_.tile_counter, 1);
        if (fetched + 1 == static_cast<uint32_t>(p_.tiles - p_.stream_k_tiles))
            ptx::store_relaxed_gpu(p_.tile_counter, 0);
        queue_.send(fetched + p_.stream_k_tiles + runs_.clusters);
    }

private:
    static constexpr int32_t unknown = -1;

    const Params& p_;
    const ClusterCoord coord_;
    const StreamKRuns runs_;
    TileQueue<C, MB> queue_;
    int32_t i_ = 0, end_ = 0, tile_;
    const bool dynamic_;
};

// For consumers. The body must be a function of its own: otherwise ptxas moves accumulators between
// registers, and then has to wait for each wgmma.
template <Config C, Major MB, typename Body>
__device__ inline void for_each_work(Scheduler<C, MB> scheduler, Body body)
{
    for (Work work; scheduler.next(work);)
        body(work, scheduler);
}

}  // namespace hg::sm90
