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

#include "arch/common/ptx/global.cuh"
#include "arch/sm90/mainloop.cuh"

namespace hg::sm90 {

// The k tiles first ... last - 1 of a tile.
struct Work {
    Position at;
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
template <Config C, Major MY>
class Announcements {
public:
    // `smem`: shared address of Smem.
    __device__ explicit Announcements(uint32_t smem) : smem_(smem) {}

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
        ptx::mbarrier_wait_parity(full(), read_ / announcements % 2);
        const auto tile = static_cast<int32_t>(ptx::load_shared_u32(number()));
        ++read_;
        return uniform(tile);
    }

private:
    using Layout = Smem<C, MY>;
    uint32_t smem_, read_ = 0;

    __device__ uint32_t full() const
    {
        return smem_ + offsetof(Layout, announced) + read_ % announcements * 8;
    }
    __device__ uint32_t number() const
    {
        return smem_ + offsetof(Layout, announcement) + read_ % announcements * 4;
    }
};

// Hands out a run of streamed k tiles, then whole tiles.
template <Config C, Major MY>
class Scheduler {
public:
    // `smem`: shared address of Smem.
    __device__ Scheduler(const Params& p, const Member& member, int32_t k_tiles, uint32_t smem)
        : p_(p), member_(member), stream_(Stream::of<C>(p, k_tiles)), numbers_(smem),
          tile_(number_of(p, static_cast<int32_t>(blockIdx.x / C.ctas()))),
          hands_out_(can_hand_out(C) && p.handed && k_tiles > 0)
    {
        if (stream_.length > 0) {
            i_ = stream_.begin(tile_), end_ = stream_.begin(tile_ + 1);
            tile_ += p.stream_tiles;
        }
    }

    // False where nothing is left. Whole warps.
    __device__ bool next(Work& work)
    {
        const bool streams = i_ < end_;
        if (hands_out_ && !streams && tile_ == unknown)
            tile_ = numbers_.read();
        if (!streams && tile_ >= p_.tiles)
            return false;
        work = {{}, tile_, 0, stream_.k_tiles};
        if (streams) {
            work.tile = i_ / stream_.k_tiles;
            work.first = i_ - work.tile * stream_.k_tiles;
            work.last = min(stream_.k_tiles, work.first + end_ - i_);
            i_ += work.k_tiles();
        } else {
            tile_ = hands_out_ ? unknown : tile_ + stream_.clusters;
        }
        work.at = position_of<C>(p_, member_, work.tile);
        return true;
    }

    // A thread of the consumer that multiplies what next() has just said.
    __device__ void announce_next() const
    {
        if (!hands_out_ || tile_ != unknown)
            return;
        numbers_.expect();
        if (member_.neighbour != 0)
            return;
        const uint32_t fetched = ptx::atomic_add_relaxed_gpu(p_.handed, 1);
        if (fetched + 1 == static_cast<uint32_t>(p_.tiles - p_.stream_tiles))
            ptx::store_relaxed_gpu(p_.handed, 0);
        numbers_.send(fetched + p_.stream_tiles + stream_.clusters);
    }

private:
    static constexpr int32_t unknown = -1;

    const Params& p_;
    const Member member_;
    const Stream stream_;
    Announcements<C, MY> numbers_;
    int32_t i_ = 0, end_ = 0, tile_;
    const bool hands_out_;
};

// For consumers: around a body that is no function ptxas moves accumulators, and then waits for each wgmma.
template <Config C, Major MY, typename Body>
__device__ inline void for_each_work(Scheduler<C, MY> scheduler, Body body)
{
    for (Work work; scheduler.next(work);)
        body(work, scheduler);
}

// Where a consumer leaves its sums, or looks for those of another cluster. A run that ends inside a tile
// uses the second place, unless that tile is its first.
template <Config C>
__device__ inline float4* partial_of(const Params& p, const Stream& stream, const Member& member,
                                     int32_t tile_begin, int32_t cluster, int part)
{
    const bool second = stream.begin(cluster) < tile_begin;
    const int64_t place = (int64_t{2} * cluster + second) * C.ctas() + member.neighbour;
    return reinterpret_cast<float4*>(p.partials + (place * C.parts() + part) * part_floats(C)) +
           threadIdx.x % 128;
}

// One float4 of each thread after the other: blocks of eight y, 64 x.
template <Config C, typename Body>
__device__ inline void for_each_quad(Accumulator<C>& acc, float4* at, Body body)
{
#pragma unroll
    for (int block = 0; block < C.blocks(); ++block)
#pragma unroll
        for (int quad = 0; quad < C.y / 8; ++quad)
            body(reinterpret_cast<float(&)[4]>(acc[block][4 * quad]),
                 at + (block * (C.y / 8) + quad) * 128);
}

template <Config C>
__device__ inline void leave_partial(Accumulator<C>& acc, float4* at)
{
    for_each_quad<C>(acc, at,
                     [](float(&v)[4], float4* to) { __stcg(to, make_float4(v[0], v[1], v[2], v[3])); });
}

template <Config C>
__device__ inline void take_partial(Accumulator<C>& acc, float4* at)
{
    for_each_quad<C>(acc, at, [](float(&v)[4], const float4* from) {
        const float4 term = __ldcg(from);
        v[0] = term.x, v[1] = term.y, v[2] = term.z, v[3] = term.w;
    });
}

template <Config C>
__device__ inline void add_partial(Accumulator<C>& acc, float4* at)
{
    for_each_quad<C>(acc, at, [](float(&v)[4], const float4* from) {
        const float4 term = __ldcg(from);
        v[0] += term.x, v[1] += term.y, v[2] += term.z, v[3] += term.w;
    });
}

// What the consumer's first thread finds, for all of them.
template <typename Question>
__device__ inline bool ask_once(uint32_t& answer, int consumer, Question question)
{
    ptx::bar_sync(1 + consumer, 128);
    if (threadIdx.x % 128 == 0)
        answer = question();
    ptx::bar_sync(1 + consumer, 128);
    return answer != 0;
}

// The clusters first ... last share a tile. True where `acc` now has the whole sum.
template <Config C>
__device__ inline bool join_partials(const Params& p, const Stream& stream, const Member& member,
                                     const Work& work, Accumulator<C>& acc, uint32_t& answer, int consumer)
{
    const int32_t begin = work.tile * stream.k_tiles;
    const int32_t first = stream.owner(begin), last = stream.owner(begin + stream.k_tiles - 1);
    const auto here = number_of(p, static_cast<int32_t>(blockIdx.x / C.ctas()));
    const int part = C.kind == Kind::PingPong ? 0 : consumer;
    uint32_t* const arrivals =
        p.arrivals + (int64_t{work.tile} * C.ctas() + member.neighbour) * C.parts() + part;
    const auto others = static_cast<uint32_t>(last - first);
    const auto partial = [&](int32_t cluster) {
        return partial_of<C>(p, stream, member, begin, cluster, part);
    };

    // The first to have k tiles of the tile comes to it last, as a rule: what it would leave, nobody reads.
    bool all = here == first &&
               ask_once(answer, consumer, [&] { return ptx::load_acquire_gpu(arrivals) == others; });
    if (!all) {
        leave_partial<C>(acc, partial(here));
        all =
            ask_once(answer, consumer, [&] { return ptx::atomic_add_acq_rel_gpu(arrivals, 1) == others; });
    }
    if (!all)
        return false;
    if (threadIdx.x % 128 == 0)
        *arrivals = 0;
    // Two terms may change places, so that only those from the third on have to wait for their turn.
    const bool in_place = here <= first + 1;
    if (!in_place)
        take_partial<C>(acc, partial(first));
    for (int32_t cluster = in_place ? first : first + 1; cluster <= last; ++cluster)
        if (!in_place || cluster != here)
            add_partial<C>(acc, partial(cluster));
    return true;
}

}  // namespace hg::sm90
