// GEMM with one tile a cluster: its CTAs multiply a slice of k each, then send their sums to the CTAs that
// own them. An owner has some blocks of eight y, all rows; it adds up the slices in order, so that the bits
// do not depend on timing, and stores its part of the tile.
//
// Beside the barriers of mainloop.cuh:
//   arrived           senders -> owner. Count 1, the owner's arrive that announces the bytes of all other
//                     slices; completes when these have landed.
//   cluster barrier   once, before anything is signalled: the barriers of all CTAs are initialised. No CTA
//                     waits for others at the end: what is sent to it, it waits for.
//   named barrier 1   the consumers of one CTA: have multiplied; have written its part of the tile.
#pragma once

#include "arch/sm90/join.cuh"

namespace hg::sm90 {

// Leaves this slice's sums with the owners of their blocks.
template <Config C, Major MY>
__device__ inline void send_parts(const Params& p, const float (&acc)[C.y / 2], Smem<C, MY>& smem,
                                  const Member& member)
{
    constexpr int block_step = 128 * C.consumers * 16;
    int owner = -1;
    Part part{0, 0};
    uint32_t to = 0, arrived = 0;
#pragma unroll
    for (int block = 0; block < C.y / 8; ++block) {
        if (block == part.last) {
            part = Part::of(p, ++owner);
            const uint32_t rank = owner * C.ctas() + member.neighbour;
            const int slot = member.slice < owner ? member.slice : member.slice - 1;
            to = ptx::map_shared(ptx::shared_address(smem.incoming), rank) +
                 slot * incoming_step<C>(part.blocks()) + threadIdx.x * 16;
            arrived = ptx::map_shared(ptx::shared_address(&smem.arrived), rank);
        }
        if (owner != member.slice)
            ptx::store_async_f32x4(to, reinterpret_cast<const float(&)[4]>(acc[4 * block]), arrived);
        to += block_step;
    }
}

// The k tiles that a slice multiplies: none where alpha is 0.
struct Slice {
    int32_t first, last;

    __device__ Slice(const Params& p, const Scalars& s, int slice)
        : first(s.alpha != 0.0f ? p.slice_start[slice] : 0),
          last(s.alpha != 0.0f ? p.slice_start[slice + 1] : 0)
    {
    }
};

template <Config C, Major MX, Major MY>
__device__ inline void produce_slice(const Params& p, const Member& member, Smem<C, MY>& smem)
{
    const Position at = smem.at;
    const bool leader = ptx::elect_one();
    if (leader)
        prefetch_tile<C, MX, MY>(p, member, at, p.slice_start[member.slice],
                                 p.slice_start[member.slice + 1]);
    __syncwarp();
    ptx::wait_for_earlier_grids();
    if (p.early)
        ptx::launch_dependents();
    const Slice slice(p, load_scalars(p.output), member.slice);
    auto ring = Ring<Smem<C, MY>::stages>::writer();
    load_tile<C, MX, MY>(p, member, Stages<C, MY>(smem), ring, at, slice.first, slice.last, leader);
    if (C.kind == Kind::Split && C.ctas() == 1 && p.split > 1)
        ptx::cluster_wait();
}

// From the slice's sums to those of all slices, of the blocks that are returned.
template <Config C, Major MY>
__device__ inline Part sum_slices(const Params& p, float (&acc)[C.y / 2], Smem<C, MY>& smem,
                                  const Member& member)
{
    const Part part = Part::of(p, member.slice);
    if (p.split == 1)
        return part;
    if constexpr (C.is_global()) {
        return join_slices<C>(p, acc, smem, part);
    } else {
        if constexpr (C.ctas() == 1)
            ptx::cluster_wait();
        send_parts<C>(p, acc, smem, member);
        if (part.blocks() > 0) {
            ptx::mbarrier_wait_parity(ptx::shared_address(&smem.arrived), 0);
            add_up<C>(acc, smem.incoming, part, member.slice, p.split);
        }
        return part;
    }
}

template <Config C, Type T, Major MX, Major MY>
__device__ inline void consume_slice(const Params& p, const Member& member, Smem<C, MY>& smem, int consumer)
{
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const Slice slice(p, scalars, member.slice);
    const BiasShare<C> bias(p, smem.at);
    Accumulator<C> acc;
    auto ring = Ring<Smem<C, MY>::stages>::reader();
    multiply_tile<C, T, MX, MY>(acc, member, Stages<C, MY>(smem), ring, slice.last - slice.first, consumer,
                                [] {});
    ptx::launch_dependents();
    const Part part = sum_slices<C>(p, acc[0], smem, member);
    if (part.blocks() > 0)
        store_owned<C, T>(p, scalars, bias, acc[0], smem, part);
}

template <Config C, Type T, Major MX, Major MY>
__device__ inline void run_split(const Params& p, Smem<C, MY>& smem)
{
    prepare<C>(p, smem);
    const auto member = C.is_global() ? Member{0, smem.slice} : Member::here<C>();
    const int warp = uniform(threadIdx.x / 32);
    if (warp < 4 * C.consumers)
        consume_slice<C, T, MX, MY>(p, member, smem, warp / 4);
    else
        produce_slice<C, MX, MY>(p, member, smem);
}

}  // namespace hg::sm90
