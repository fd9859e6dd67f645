// GEMM with one tile a cluster: its CTAs multiply a slice of k each, then send their sums to the CTAs that
// own them. An owner has some blocks of eight y, all rows; it adds up the slices in order, so that the bits
// do not depend on timing, and stores its part of the tile.
//
// Beside the barriers of mainloop.cuh:
//   arrived           senders -> owner. Count 1, the owner's arrive that announces the bytes of all other
//                     slices; completes when these have landed.
//   cluster barrier   once, before anything is signalled: the barriers of all CTAs are initialised. No CTA
//                     waits for others at the end: what is sent to it, it waits for.
//   named barrier 1   the consumers of one CTA: have multiplied, so that the stages have room for what
//                     they add up and store; have written its part of the tile.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/epilogue.cuh"
#include "arch/sm90/split_k/global.cuh"
#include "arch/sm90/split_k/reduction.cuh"
#include "arch/sm90/split_k/stagger.cuh"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// Bytes between what two slices leave for an owner: one accumulator fragment a thread and block.
template <Config C>
__device__ inline int32_t slot_pitch(const Params& p)
{
    return p.part * fragment_bytes(C);
}

// Leaves this slice's sums with the owners of their blocks, its own among the terms that it adds up.
// Without branches, which would take as long as the stores.
template <Config C, Major MB>
__device__ inline void send_parts(const Params& p, const float (&acc)[C.tile_n / 2], Smem<C, MB>& smem,
                                  const ClusterCoord& coord)
{
    const uint32_t incoming = ptx::shared_address(smem.incoming) + threadIdx.x * 16;
    const uint32_t partials_full = ptx::shared_address(&smem.partials_full);
    const int32_t part = p.part, pitch = slot_pitch<C>(p);
    unsigned char* own = reduction_inputs<C>(smem);
    int32_t owner = 0, within = 0;
#pragma unroll
    for (int block = 0; block < C.tile_n / 8; ++block) {
        const auto& sums = reinterpret_cast<const float(&)[4]>(acc[4 * block]);
        const uint32_t rank = owner * C.ctas() + coord.cta;
        const int32_t slot = coord.slice - (coord.slice > owner ? 1 : 0);
        const uint32_t to = ptx::map_shared(incoming, rank) + slot * pitch + within * fragment_bytes(C);
        if (owner != coord.slice)
            ptx::store_async_f32x4(to, sums, ptx::map_shared(partials_full, rank));
        else
            *reinterpret_cast<float4*>(own + within * fragment_bytes(C)) =
                make_float4(sums[0], sums[1], sums[2], sums[3]);
        const bool last = ++within == part;
        owner += last ? 1 : 0;
        within = last ? 0 : within;
    }
}

// What a CTA computes of which tile.
struct SplitWork {
    ClusterCoord coord;
    int32_t tile;
    TileCoord at;

    template <Config C>
    __device__ static SplitWork of(const Params& p)
    {
        const auto cta = static_cast<int32_t>(blockIdx.x);
        if constexpr (C.is_global()) {
            const int32_t number = remapped_cluster(p, cta / C.ctas()),
                          slice = p.slice_clusters.quotient(number);
            const int32_t cluster = number - slice * p.slice_clusters.value;
            const auto coord = ClusterCoord::of_slice<C>(slice);
            return {coord, cluster * C.ctas() + coord.cta, position_of<C>(p, coord, cluster)};
        } else {
            const int32_t tile = remapped_cluster(p, p.cluster.quotient(cta));
            const auto coord = ClusterCoord::here<C>();
            return {coord, tile, position_of<C>(p, coord, tile)};
        }
    }
};

// One thread: what the other slices of k will send, and what the consumers have to know.
template <Config C, Major MB>
__device__ inline void prepare_split(const Params& p, Smem<C, MB>& smem)
{
    const auto work = SplitWork::of<C>(p);
    if constexpr (!C.is_global()) {
        const uint32_t partials_full = ptx::shared_address(&smem.partials_full);
        ptx::mbarrier_init(partials_full, 1);
        ptx::fence_mbarrier_init();
        const int blocks = Part::of<C>(p, work.coord.slice).blocks();
        ptx::mbarrier_arrive_expect_tx(partials_full, (p.split - 1) * blocks * fragment_bytes(C));
    }
    smem.at = work.at;
    smem.tile = work.tile;
    smem.slice = work.coord.slice;
}

// The k tiles that a slice multiplies.
struct Slice {
    int32_t first, last;

    __device__ Slice(const Params& p, int slice)
        : first(p.slice_start[slice]), last(p.slice_start[slice + 1])
    {
    }
};

template <Config C, Major MA, Major MB>
__device__ inline void produce_slice(const Params& p, Smem<C, MB>& smem)
{
    const Stages<C, MB> stages(smem);
    const bool leader = ptx::elect_one();
    const auto work = SplitWork::of<C>(p);
    const Slice slice(p, work.coord.slice);
    const int32_t waits_at =
        begin_loads<C, MA, MB>(p, work.coord, work.at, slice.first, slice.last, leader);
    const int32_t last = is_alpha_zero_on_device(p.output) ? slice.first : slice.last;
    auto ring = Ring<Smem<C, MB>::stages>::writer();
    load_tile<C, MA, MB>(p, work.coord, stages, ring, work.at, slice.first, last, waits_at, leader);
    if (C.schedule == Schedule::SplitK && C.ctas() == 1 && p.split > 1)
        ptx::cluster_wait();
}

// From a slice's sums to those of all slices in its part of the tile; false where it has none.
template <Config C, Type T, Major MB>
__device__ inline bool sum_slices(const SplitStore<C, T, MB>& out, const float (&acc)[C.tile_n / 2],
                                  const ClusterCoord& coord, const Part& part)
{
    if constexpr (C.ctas() == 1)
        ptx::cluster_wait();
    send_parts<C>(out.p, acc, out.smem, coord);
    if (part.blocks() == 0)
        return false;
    ReductionInputs inputs{ptx::shared_address_once(out.smem.incoming + threadIdx.x * 16),
                           static_cast<uint32_t>(slot_pitch<C>(out.p)), fragment_bytes(C),
                           ptx::shared_address_once(reduction_inputs<C>(out.smem)), coord.slice};
    ptx::mbarrier_wait_parity(ptx::shared_address(&out.smem.partials_full), 0);
    reduce_part(out, part, out.p.split, inputs);
    return true;
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_slice(const Params& p, Smem<C, MB>& smem, int consumer)
{
    const auto coord = C.is_global() ? ClusterCoord::of_slice<C>(smem.slice) : ClusterCoord::here<C>();
    const Slice slice(p, coord.slice);
    const Part part = Part::of<C>(p, coord.slice);
    const auto rows = VectorRows::of<C>(p, smem.at, part);
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : slice.last - slice.first;
    const BiasShare<C> bias(p, smem.at);
    SplitStore<C, T, MB> out(p, scalars, smem);
    out.prepare(coord, part);
    Accumulator<C> acc;
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    const Stagger<C, MB> stagger(out.is_staggered(), k_tiles, consumer);
    multiply_tile<C, T, MA, MB>(
        acc, coord, Stages<C, MB>(smem), ring, k_tiles, consumer, [&](int32_t i) { stagger.begin(i); },
        [&] { stagger.end(); });
    ptx::launch_dependents();
    if (out.is_staggered())
        return out.store_own(acc[0], stagger.free_stage(ring.stage), rows);
    ptx::bar_sync(1, 128 * C.consumers);
    out.begin(bias);
    if constexpr (C.is_global())
        return reduce_globally(out, acc[0], part, rows);
    if (out.is_whole()) {
        out.stage_all(acc[0]);
        if (out.store_typed(rows)) [[likely]]
            return;
    } else if (!sum_slices(out, acc[0], coord, part) || out.store_typed(rows)) {
        return;
    }
    out.store_floats(part, rows.count);
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run_split(const Params& p, Smem<C, MB>& smem)
{
    const int warp = uniform(threadIdx.x / 32);
    if (warp == 4 * C.consumers) {
        produce_slice<C, MA, MB>(p, smem);
        return;
    }
    if (threadIdx.x == 0) {
        prefetch_maps(p);
        init_barriers<C>(smem);
    }
    if (threadIdx.x == 32)
        prepare_split<C>(p, smem);
    sync_roles<C>(p);
    consume_slice<C, T, MA, MB>(p, smem, warp / 4);
}

}  // namespace hg::sm90
