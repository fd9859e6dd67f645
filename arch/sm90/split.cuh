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

#include "arch/sm90/join.cuh"

namespace hg::sm90 {

// Bytes between what two slices leave for an owner: one accumulator fragment a thread and block.
template <Config C>
__device__ inline int32_t slot_pitch(const Params& p)
{
    return p.part * sums_bytes(C);
}

// Leaves this slice's sums with the owners of their blocks, its own among the terms that it adds up.
// Without branches, which would take as long as the stores.
template <Config C, Major MY>
__device__ inline void send_parts(const Params& p, const float (&acc)[C.y / 2], Smem<C, MY>& smem,
                                  const Member& member)
{
    const uint32_t incoming = ptx::shared_address(smem.incoming) + threadIdx.x * 16;
    const uint32_t arrived = ptx::shared_address(&smem.arrived);
    const int32_t part = p.part, pitch = slot_pitch<C>(p);
    unsigned char* own = terms_of<C>(smem);
    int32_t owner = 0, within = 0;
#pragma unroll
    for (int block = 0; block < C.y / 8; ++block) {
        const auto& sums = reinterpret_cast<const float(&)[4]>(acc[4 * block]);
        const uint32_t rank = owner * C.ctas() + member.neighbour;
        const int32_t slot = member.slice - (member.slice > owner ? 1 : 0);
        const uint32_t to = ptx::map_shared(incoming, rank) + slot * pitch + within * sums_bytes(C);
        if (owner != member.slice)
            ptx::store_async_f32x4(to, sums, ptx::map_shared(arrived, rank));
        else
            *reinterpret_cast<float4*>(own + within * sums_bytes(C)) =
                make_float4(sums[0], sums[1], sums[2], sums[3]);
        const bool last = ++within == part;
        owner += last ? 1 : 0;
        within = last ? 0 : within;
    }
}

// What a CTA computes of which tile.
struct SplitWork {
    Member member;
    int32_t tile;
    Position at;

    template <Config C>
    __device__ static SplitWork of(const Params& p)
    {
        const auto cta = static_cast<int32_t>(blockIdx.x);
        if constexpr (C.is_global()) {
            const int32_t number = number_of(p, cta / C.ctas()), slice = p.slice_clusters.quotient(number);
            const int32_t cluster = number - slice * p.slice_clusters.value;
            const auto member = Member::of_slice<C>(slice);
            return {member, cluster * C.ctas() + member.neighbour, position_of<C>(p, member, cluster)};
        } else {
            const int32_t tile = number_of(p, p.cluster.quotient(cta));
            const auto member = Member::here<C>();
            return {member, tile, position_of<C>(p, member, tile)};
        }
    }
};

// One thread: what the other slices of k will send, and what the consumers have to know.
template <Config C, Major MY>
__device__ inline void prepare_split(const Params& p, Smem<C, MY>& smem)
{
    const auto work = SplitWork::of<C>(p);
    if constexpr (!C.is_global()) {
        const uint32_t arrived = ptx::shared_address(&smem.arrived);
        ptx::mbarrier_init(arrived, 1);
        ptx::fence_mbarrier_init();
        const int blocks = Part::of<C>(p, work.member.slice).blocks();
        ptx::mbarrier_arrive_expect_tx(arrived, (p.split - 1) * blocks * sums_bytes(C));
    }
    smem.at = work.at;
    smem.tile = work.tile;
    smem.slice = work.member.slice;
}

// The k tiles that a slice multiplies.
struct Slice {
    int32_t first, last;

    __device__ Slice(const Params& p, int slice)
        : first(p.slice_start[slice]), last(p.slice_start[slice + 1])
    {
    }
};

template <Config C, Major MX, Major MY>
__device__ inline void produce_slice(const Params& p, Smem<C, MY>& smem)
{
    const Stages<C, MY> stages(smem);
    const bool leader = ptx::elect_one();
    const auto work = SplitWork::of<C>(p);
    const Slice slice(p, work.member.slice);
    const int32_t waits_at =
        begin_loads<C, MX, MY>(p, work.member, work.at, slice.first, slice.last, leader);
    const int32_t last = is_alpha_zero_on_device(p.output) ? slice.first : slice.last;
    auto ring = Ring<Smem<C, MY>::stages>::writer();
    load_tile<C, MX, MY>(p, work.member, stages, ring, work.at, slice.first, last, waits_at, leader);
    if (C.kind == Kind::Split && C.ctas() == 1 && p.split > 1)
        ptx::cluster_wait();
}

// From a slice's sums to those of all slices in its part of the tile; false where it has none.
template <Config C, Type T, Major MY>
__device__ inline bool sum_slices(const SplitStore<C, T, MY>& out, const float (&acc)[C.y / 2],
                                  const Member& member, const Part& part)
{
    if constexpr (C.ctas() == 1)
        ptx::cluster_wait();
    send_parts<C>(out.p, acc, out.smem, member);
    if (part.blocks() == 0)
        return false;
    Terms terms{ptx::shared_address_once(out.smem.incoming + threadIdx.x * 16),
                static_cast<uint32_t>(slot_pitch<C>(out.p)), sums_bytes(C),
                ptx::shared_address_once(terms_of<C>(out.smem)), member.slice};
    ptx::mbarrier_wait_parity(ptx::shared_address(&out.smem.arrived), 0);
    add_up(out, part, out.p.split, terms);
    return true;
}

template <Config C, Type T, Major MX, Major MY>
__device__ inline void consume_slice(const Params& p, Smem<C, MY>& smem, int consumer)
{
    const auto member = C.is_global() ? Member::of_slice<C>(smem.slice) : Member::here<C>();
    const Slice slice(p, member.slice);
    const Part part = Part::of<C>(p, member.slice);
    const auto rows = VectorRows::of<C>(p, smem.at, part);
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : slice.last - slice.first;
    const BiasShare<C> bias(p, smem.at);
    SplitStore<C, T, MY> out(p, scalars, smem);
    out.prepare(member, part);
    Accumulator<C> acc;
    auto ring = Ring<Smem<C, MY>::stages>::reader();
    const Lag<C, MY> lag(out.is_lagging(), k_tiles, consumer);
    multiply_tile<C, T, MX, MY>(
        acc, member, Stages<C, MY>(smem), ring, k_tiles, consumer, [&](int32_t i) { lag.begin(i); },
        [&] { lag.end(); });
    ptx::launch_dependents();
    if (out.is_lagging())
        return out.store_own(acc[0], lag.free_stage(ring.stage), rows);
    ptx::bar_sync(1, 128 * C.consumers);
    out.begin(bias);
    if constexpr (C.is_global())
        return join_slices(out, acc[0], part, rows);
    if (out.is_whole()) {
        out.stage_all(acc[0]);
        if (out.store_typed(rows)) [[likely]]
            return;
    } else if (!sum_slices(out, acc[0], member, part) || out.store_typed(rows)) {
        return;
    }
    out.store_floats(part, rows.count);
}

template <Config C, Type T, Major MX, Major MY>
__device__ inline void run_split(const Params& p, Smem<C, MY>& smem)
{
    const int warp = uniform(threadIdx.x / 32);
    if (warp == 4 * C.consumers) {
        produce_slice<C, MX, MY>(p, smem);
        return;
    }
    if (threadIdx.x == 0) {
        prefetch_maps(p);
        init_barriers<C>(smem);
    }
    if (threadIdx.x == 32)
        prepare_split<C>(p, smem);
    meet<C>(p);
    consume_slice<C, T, MX, MY>(p, smem, warp / 4);
}

}  // namespace hg::sm90
