// Split-K GEMM with one tile per cluster: each slice of K is multiplied by some of its CTAs, which then
// send their partial sums to the CTAs that own them. An owner owns some blocks of eight columns, with all
// rows; it adds up the slices in order, so that the bits do not depend on timing, and stores its blocks. In
// tree kernels a slice is a branch of the tree, and the owner adds them pairwise.
//
// Beside the barriers of mainloop.cuh:
//   partials_full     all other slices -> owner. Count 1: the owner's arrive, which expects the bytes of
//                     all other slices; completes when they have landed.
//   cluster barrier   all CTAs of the cluster, once, before any CTA sends partial sums: the barriers of all
//                     CTAs are initialised. No CTA waits for others at the end: an owner has waited for all
//                     that others send to it.
//   named barrier 1   the consumers of one CTA: all have multiplied, so that the stages' room is free for
//                     what they add up and store; all have staged the owned blocks.
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
#include "arch/sm90/split_k/groups.cuh"
#include "arch/sm90/split_k/reduction.cuh"
#include "arch/sm90/split_k/stagger.cuh"
#include "arch/sm90/split_k/staging.cuh"
#include "arch/sm90/tree/quad.cuh"

#include <cstdint>

namespace hg::sm90 {

// body<major of A>(): an entry point may serve both. What loads and multiplies is a small part of its code.
template <Major MA, typename Body>
__device__ inline void with_major_of_a(const Params& p, Body body)
{
    if constexpr (MA != either_major)
        body.template operator()<MA>();
    else if (p.a_is_k_major) [[likely]]
        body.template operator()<Major::K>();
    else
        body.template operator()<Major::MN>();
}

// Bytes from the partial sums of one slice to those of the next, at an owner: one accumulator fragment per
// thread and block.
template <Config C>
__device__ inline int32_t slot_pitch(const Params& p)
{
    return p.blocks_per_owner * fragment_bytes(C);
}

// Sends this slice's partial sums to the owners of their blocks and puts its own among the inputs of its
// reduction. Branches would take as long as the stores: hence selects.
template <Config C, Major MB>
__device__ inline void send_partials(const Params& p, const float (&acc)[C.tile_n / 2], Smem<C, MB>& smem,
                                     const ClusterCoord& coord)
{
    const uint32_t incoming = ptx::shared_address(smem.incoming) + threadIdx.x * 16;
    const uint32_t partials_full = ptx::shared_address(&smem.partials_full);
    const int32_t owned = p.blocks_per_owner, pitch = slot_pitch<C>(p);
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
        const bool last = ++within == owned;
        owner += last ? 1 : 0;
        within = last ? 0 : within;
    }
}

// The tile and the slice of K that a CTA computes. `end`: end_of_rows() of groups.
struct SplitWork {
    ClusterCoord coord;
    int32_t tile;
    TileCoord at;
    int32_t end = 0;

    template <Config C>
    __device__ static SplitWork of(const Params& p)
    {
        const auto cta = static_cast<int32_t>(blockIdx.x);
        if constexpr (C.groups) {
            const auto [at, end] = find_tile_of_group<C>(p, cta);
            return {{0, 0}, cta, at, end};
        } else if constexpr (C.is_global()) {
            const int32_t index = remapped_cluster(p, cta / C.ctas()),
                          slice = p.slice_clusters.quotient(index);
            const int32_t cluster = index - slice * p.slice_clusters.value;
            const auto coord = ClusterCoord::of_slice<C>(slice);
            return {coord, cluster * C.ctas() + coord.cta, tile_coord<C>(p, coord, cluster)};
        } else {
            const int32_t tile = remapped_cluster(p, p.cluster.quotient(cta));
            const auto coord = ClusterCoord::here<C>();
            return {coord, tile, tile_coord<C>(p, coord, tile)};
        }
    }
};

// Expects the partial sums of the other slices and leaves the tile's coordinates for the consumers. Called
// by a warp if there are groups, else by one thread.
template <Config C, Major MB>
__device__ inline void prepare_split(const Params& p, Smem<C, MB>& smem)
{
    const auto work = SplitWork::of<C>(p);
    if (C.groups && ptx::lane_id() != 0)
        return;
    if constexpr (!C.is_global() && !C.groups) {
        const uint32_t partials_full = ptx::shared_address(&smem.partials_full);
        ptx::mbarrier_init(partials_full, 1);
        ptx::fence_mbarrier_init();
        const int blocks = OwnedBlocks::of<C>(p, work.coord.slice).blocks();
        ptx::mbarrier_arrive_expect_tx(partials_full, (p.split - 1) * blocks * fragment_bytes(C));
    }
    smem.at = work.at;
    smem.tile = work.tile;
    smem.slice = work.coord.slice;
    if constexpr (C.groups)
        smem.end = work.end;
}

// The K tiles of a slice.
struct Slice {
    int32_t first, last;

    template <Config C>
    __device__ static Slice of(const Params& p, int32_t slice)
    {
        if constexpr (C.is_global())
            return {p.slices.quotient(slice * p.k_tiles), p.slices.quotient((slice + 1) * p.k_tiles)};
        else
            return {p.slice_start[slice], p.slice_start[slice + 1]};
    }
};

template <Config C, Major MA, Major MB>
__device__ inline void produce_slice(const Params& p, Smem<C, MB>& smem)
{
    const Stages<C, MB> stages(smem);
    const bool leader = ptx::elect_one();
    const auto work = SplitWork::of<C>(p);
    const auto slice = Slice::of<C>(p, work.coord.slice);
    const int32_t waits_at =
        begin_loads<C, MA, MB>(p, work.coord, work.at, slice.first, slice.last, leader);
    const bool nothing = is_alpha_zero_on_device(p.output) || (C.groups && !exists(work.at));
    const int32_t last = nothing ? slice.first : slice.last;
    auto ring = Ring<Smem<C, MB>::stages>::writer();
    const auto load = [&](int32_t begin, int32_t end) {
        load_tile<C, MA, MB>(p, work.coord, stages, ring, work.at, begin, end, waits_at, leader);
    };
    if (does_producer_prefetch(C) && p.prefetches_output) [[unlikely]] {
        const int32_t filled = min(slice.first + Smem<C, MB>::stages, last);
        load(slice.first, filled);
        prefetch_split_output<C>(p, load_scalars(p.output), work.coord, work.at);
        load(filled, last);
    } else {
        load(slice.first, last);
    }
    if (C.schedule == Schedule::SplitK && C.ctas() == 1 && p.split > 1)
        ptx::cluster_wait();
}

// Exchanges partial sums and stages the sums of all slices in the owned blocks; returns false if the CTA
// owns none.
template <Config C, Type T, Major MB>
__device__ inline bool sum_slices(const SplitStore<C, T, MB>& out, const float (&acc)[C.tile_n / 2],
                                  const ClusterCoord& coord, const OwnedBlocks& owned)
{
    if constexpr (C.ctas() == 1)
        ptx::cluster_wait();
    send_partials<C>(out.p, acc, out.smem, coord);
    if (owned.blocks() == 0)
        return false;
    ReductionInputs inputs{ptx::shared_address_once(out.smem.incoming + threadIdx.x * 16),
                           static_cast<uint32_t>(slot_pitch<C>(out.p)), fragment_bytes(C),
                           ptx::shared_address_once(reduction_inputs<C>(out.smem)), coord.slice};
    ptx::mbarrier_wait_parity(ptx::shared_address(&out.smem.partials_full), 0);
    reduce_owned(out, owned, out.p.split, inputs);
    return true;
}

// From a slice's sums to the output. Returns at once where a CTA owns none of it.
template <Config C, Type T, Major MB>
__device__ inline void finish_slice(SplitStore<C, T, MB>& out, const BiasShare<C>& bias,
                                    float (&acc)[C.tile_n / 2], const ClusterCoord& coord,
                                    const OwnedBlocks& owned, const VectorRows& rows)
{
    ptx::bar_sync(1, 128 * C.consumers);
    out.stage_bias(bias);
    if constexpr (C.is_global())
        return reduce_global(out, acc, owned, rows);
    if (C.groups || out.is_unsplit()) {
        out.stage_all(acc);
        if (out.store_typed(rows)) [[likely]]
            return;
    } else if (!sum_slices(out, acc, coord, owned) || out.store_typed(rows)) {
        return;
    }
    out.store_floats(owned, rows.count);
}

// A slice of whole leaves. What the output needs is computed when the registers of waiting sums are free.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_leaves_of_slice(const Params& p, Smem<C, MB>& smem, int consumer)
{
    const auto coord = ClusterCoord::here<C>();
    const auto slice = Slice::of<C>(p, coord.slice);
    ptx::wait_for_earlier_grids();
    Scalars scalars = load_scalars(p.output);
    const int32_t leaves = p.leaves / p.split,
                  k_tiles = scalars.alpha == 0.0f ? 0 : (slice.last - slice.first) / leaves;
    Accumulator<C> acc;
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    with_major_of_a<MA>(p, [&]<Major M>() {
        multiply_slice<C, T, M, MB>(acc, scalars.alpha, leaves, k_tiles, coord, Stages<C, MB>(smem), ring,
                                    consumer);
    });
    scalars.alpha = 1.0f;  // of what has been multiplied by it
    const OwnedBlocks owned = OwnedBlocks::of<C>(p, coord.slice);
    const auto rows = VectorRows::of<C>(p, smem, owned);
    const BiasShare<C> bias(p, smem.at);
    SplitStore<C, T, MB> out(p, scalars, smem);
    out.prepare(coord, owned);
    ptx::launch_dependents();
    finish_slice(out, bias, acc[0], coord, owned, rows);
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_slice(const Params& p, Smem<C, MB>& smem, int consumer)
{
    if (C.groups && !exists(smem.at))
        return;
    const auto coord = C.is_global() ? ClusterCoord::of_slice<C>(smem.slice) : ClusterCoord::here<C>();
    const auto slice = Slice::of<C>(p, coord.slice);
    const OwnedBlocks owned = OwnedBlocks::of<C>(p, coord.slice);
    const auto rows = VectorRows::of<C>(p, smem, owned);
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : slice.last - slice.first;
    const BiasShare<C> bias(p, smem.at);
    SplitStore<C, T, MB> out(p, scalars, smem);
    out.prepare(coord, owned);
    Accumulator<C> acc;
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    const Stagger<C, MB> stagger(out.is_staggered(), k_tiles, consumer);
    with_major_of_a<MA>(p, [&]<Major M>() {
        multiply_tile<C, T, M, MB>(
            acc, coord, Stages<C, MB>(smem), ring, k_tiles, consumer, [&](int32_t i) { stagger.begin(i); },
            [&] { stagger.end(); });
    });
    ptx::launch_dependents();
    if (out.is_staggered())
        return out.store_staggered(acc[0], stagger.free_stage(ring.stage), rows);
    finish_slice(out, bias, acc[0], coord, owned, rows);
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run_split(const Params& p, Smem<C, MB>& smem)
{
    const int warp = uniform(threadIdx.x / 32);
    if (warp >= 4 * C.consumers) {
        if constexpr (C.moves_registers())
            ptx::setmaxnreg_dec<producer_registers>();
        if (warp == 4 * C.consumers)
            with_major_of_a<MA>(p, [&]<Major M>() { produce_slice<C, M, MB>(p, smem); });
        return;
    }
    if (threadIdx.x == 0) {
        prefetch_maps(p);
        init_barriers<C>(smem);
    }
    if (C.groups ? warp == 1 : threadIdx.x == 32)
        prepare_split<C>(p, smem);
    sync_roles<C>(p);
    if constexpr (C.moves_registers())
        ptx::setmaxnreg_inc<consumer_registers>();
    if constexpr (C.tree)
        consume_leaves_of_slice<C, T, MA, MB>(p, smem, warp / 4);
    else
        consume_slice<C, T, MA, MB>(p, smem, warp / 4);
}

}  // namespace hg::sm90
