// Stream-K's fix-up: the sum of a tile whose K tiles several clusters have multiplied. A cluster whose run
// of K tiles begins or ends inside a tile leaves its partial sums in the workspace, and says so:
//   arrivals[tile]   contributor -> contributor, in global memory, one word a consumer. The contributor
//   that
//                    finds all others arrived adds up, in the order of K, and stores the tile. So nobody
//                    waits, and the bits do not depend on which one comes last. The word goes back to 0.
//   named barrier 1 + consumer   the 128 threads of a consumer, around what one of them has read of the
//   word.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/scheduler.cuh"

#include <cstdint>

namespace hg::sm90 {

// Where a consumer leaves its sums, or looks for those of another cluster. A run that ends inside a tile
// uses the second place, unless that tile is its first.
template <Config C>
__device__ inline float4* partial_of(const Params& p, const Stream& stream, const ClusterCoord& coord,
                                     int32_t tile_begin, int32_t cluster, int part)
{
    const bool second = stream.begin(cluster) < tile_begin;
    const int64_t place = (int64_t{2} * cluster + second) * C.ctas() + coord.cta;
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
__device__ inline bool fix_up(const Params& p, const Stream& stream, const ClusterCoord& coord,
                              const Work& work, Accumulator<C>& acc, uint32_t& answer, int consumer)
{
    const int32_t begin = work.tile * stream.k_tiles;
    const int32_t first = stream.owner(begin), last = stream.owner(begin + stream.k_tiles - 1);
    const auto here = remapped_cluster(p, static_cast<int32_t>(blockIdx.x / C.ctas()));
    const int part = C.schedule == Schedule::PingPong ? 0 : consumer;
    uint32_t* const arrivals = p.arrivals + (int64_t{work.tile} * C.ctas() + coord.cta) * C.parts() + part;
    const auto others = static_cast<uint32_t>(last - first);
    const auto partial = [&](int32_t cluster) {
        return partial_of<C>(p, stream, coord, begin, cluster, part);
    };

    // The first to have k tiles of the tile comes to it last, as a rule: what it would leave, nobody reads.
    bool all = here == first &&
               ask_once(answer, consumer, [&] { return ptx::load_acquire_gpu(arrivals) == others; });
    if (!all) {
        store_partial<C>(acc, partial(here));
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
        load_partial<C>(acc, partial(first));
    for (int32_t cluster = in_place ? first : first + 1; cluster <= last; ++cluster)
        if (!in_place || cluster != here)
            add_partial<C>(acc, partial(cluster));
    return true;
}

}  // namespace hg::sm90
