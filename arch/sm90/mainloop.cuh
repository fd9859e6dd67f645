// What the kernels of sm90 share: the roles that load and multiply stages.
//
// Barriers, one of each a stage:
//   full[s]   producer -> consumers. Count 1: the producer's arrive, which also announces the bytes of
//             both operands; completes when they have landed. In a cluster each CTA's producer sends a
//             part of y to all CTAs, so that bytes come from all producers, on the same barrier.
//   empty[s]  consumers -> producer. Count C.readers() * C.senders(): one lane of each warp that reads the
//             stage, in every CTA of the cluster that this one sends to, once its wait says that the wgmma
//             has finished.
//   named barrier 0   the producer and the consumers, once: this CTA's barriers are initialised; of a split
//                     kernel, its consumers know what they compute.
//   cluster barrier   once, with neighbours: the barriers of all CTAs are initialised.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/groups.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ptx/wgmma.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/sm90/config.hpp"

namespace hg::sm90 {

constexpr int wgmma_k = 16;
constexpr int32_t no_k_tile = -1;

// This CTA's place in its cluster: C.cluster neighbours along x, by C.across along y, for each slice of k.
struct Member {
    int32_t neighbour, slice;

    template <Config C>
    __device__ int32_t x() const
    {
        return neighbour % C.cluster;
    }
    template <Config C>
    __device__ int32_t y() const
    {
        return neighbour / C.cluster;
    }
    // Rank in the cluster of the CTA of this slice at (x, y).
    template <Config C>
    __device__ uint32_t rank_of(int32_t x, int32_t y) const
    {
        return (C.is_global() ? 0 : slice * C.ctas()) + y * C.cluster + x;
    }

    template <Config C>
    __device__ static Member here()
    {
        const auto rank = static_cast<int32_t>(ptx::cluster_ctarank());
        return {rank % C.ctas(), rank / C.ctas()};
    }

    // In a cluster that has no other slice.
    template <Config C>
    __device__ static Member of_slice(int32_t slice)
    {
        return {C.ctas() == 1 ? 0 : static_cast<int32_t>(ptx::cluster_ctarank()), slice};
    }
};

// The number of this CTA's cluster, which counts as number `launched`: it says what the cluster computes.
__device__ inline int32_t number_of(const Params& p, int32_t launched)
{
    return p.numbered ? p.numbers[launched] : launched;
}

template <Config C>
__device__ inline Position position_of(const Params& p, const Member& member, int32_t index)
{
    const Tile tile = tile_at(p.grid, index);
    const int32_t x = p.along_y ? tile.n : tile.m, y = p.along_y ? tile.m : tile.n;
    return {x * C.cluster + member.x<C>(), y * C.across + member.y<C>(), tile.batch};
}

// The same in all lanes of a warp, and known to be.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffff, value, 0); }

// The first row of x of a tile, also of one of groups.
template <Config C>
__device__ inline int32_t first_x(const Position& at)
{
    return at.x * C.x;
}
template <Config C>
__device__ inline int32_t first_x(const GroupTile& at)
{
    return at.row;
}

// Where it is, nothing is loaded. An alpha that the host knows to be 0 comes as k = 0, to other kernels.
__device__ inline bool is_alpha_zero_on_device(const OutputParams& o)
{
    return o.alpha_device && *o.alpha_device == 0.0f;
}

// Shared addresses of what the stages consist of.
template <Config C, Major MY>
struct Stages {
    using Layout = Smem<C, MY>;
    uint32_t base;

    __device__ explicit Stages(const Layout& smem) : base(ptx::shared_address_once(&smem)) {}
    __device__ uint32_t x(uint32_t stage) const { return base + stage * sizeof(typename Layout::Stage); }
    __device__ uint32_t y(uint32_t stage) const { return x(stage) + x_bytes(C); }
    __device__ uint32_t full(uint32_t stage) const { return base + offsetof(Layout, full) + 8 * stage; }
    __device__ uint32_t empty(uint32_t stage) const { return base + offsetof(Layout, empty) + 8 * stage; }
};

// A box of an operand, into this CTA's stage or, where several share the operand, into that of each.
template <int Shared>
__device__ inline void load_box(uint32_t to, const CUtensorMap* map, uint32_t bar, int32_t inner,
                                int32_t outer, int32_t batch, uint32_t ranks, uint64_t policy)
{
    if constexpr (Shared > 1)
        ptx::tma_load_3d_multicast_hint(to, map, bar, inner, outer, batch, static_cast<uint16_t>(ranks),
                                        policy);
    else
        ptx::tma_load_3d_hint(to, map, bar, inner, outer, batch, policy);
}

// An operand's part of a stage, Rows rows from `row` on. Of the Shared CTAs that have it in common, number
// `index` loads its share, of rows (K-major) or of k's (MN-major, a box for each 64 rows), for all `ranks`.
template <int Rows, int Shared, Major M>
__device__ inline void load_operand(uint32_t smem, const CUtensorMap* map, uint32_t bar, int32_t row,
                                    int32_t k, int32_t batch, int32_t index, uint32_t ranks,
                                    uint64_t policy)
{
    if constexpr (M == Major::K) {
        constexpr int share = Rows / Shared;
        load_box<Shared>(smem + index * share * span_bytes, map, bar, k, row + index * share, batch, ranks,
                         policy);
    } else {
        constexpr int share = tile_k / Shared;
#pragma unroll
        for (int panel = 0; panel < round_up(Rows, span_elements) / span_elements; ++panel)
            load_box<Shared>(smem + (panel * tile_k + index * share) * span_bytes, map, bar,
                             row + panel * span_elements, k + index * share, batch, ranks, policy);
    }
}

// `at`: a Position or a GroupTile.
template <Config C, Major MX, Major MY, typename At>
__device__ inline void load_stage(const Params& p, const Member& member, uint32_t x_smem, uint32_t bar,
                                  const At& at, int32_t k)
{
    constexpr uint32_t along_x = (1u << C.cluster) - 1;
    constexpr uint32_t along_y = ((1u << C.ctas()) - 1) / along_x;  // every C.cluster-th bit
    const int32_t x = member.x<C>(), y = member.y<C>();
    load_operand<C.x, C.across, MX>(x_smem, &p.x, bar, first_x<C>(at), k, at.batch * p.x_batch_step, y,
                                    along_y << member.rank_of<C>(x, 0), p.x_policy);
    load_operand<C.y, C.cluster, MY>(x_smem + x_bytes(C), &p.y, bar, at.y * C.y, k,
                                     at.batch * p.y_batch_step, x, along_x << member.rank_of<C>(0, y),
                                     p.y_policy);
}

// This CTA's share of an operand's part of a stage, into L2.
template <int Rows, int Shared, Major M>
__device__ inline void prefetch_operand(const CUtensorMap* map, int32_t row, int32_t k, int32_t batch,
                                        int32_t index)
{
    if constexpr (M == Major::K) {
        ptx::tma_prefetch_3d(map, k, row + index * (Rows / Shared), batch);
    } else {
#pragma unroll
        for (int panel = 0; panel < round_up(Rows, span_elements) / span_elements; ++panel)
            ptx::tma_prefetch_3d(map, row + panel * span_elements, k + index * (tile_k / Shared), batch);
    }
}

// One thread asks L2 for the k tiles first ... last - 1, but for no more than Params::prefetched. The
// kernels in front may still write them: that goes to L2 as well. Of the clusters that share an operand one
// asks.
template <Config C, Major MX, Major MY>
__device__ inline void prefetch_tile(const Params& p, const Member& member, const Position& at,
                                     int32_t first, int32_t last)
{
    const int32_t x = member.x<C>(), y = member.y<C>(), end = min(last, first + p.prefetched);
#pragma unroll 1
    for (int32_t k = first * tile_k; k < end * tile_k; k += tile_k) {
        if (at.y == y)
            prefetch_operand<C.x, C.across, MX>(&p.x, at.x * C.x, k, at.batch * p.x_batch_step, y);
        if (at.x == x)
            prefetch_operand<C.y, C.cluster, MY>(&p.y, at.y * C.y, k, at.batch * p.y_batch_step, x);
    }
}

// Consumers ask L2 for what the epilogue of `count_x` x from `first_x` on of a tile will read. Thread
// number `thread` of `threads`.
template <Config C>
__device__ inline void prefetch_tile_output(const Params& p, const Scalars& s, const Position& at,
                                            int first_x, int count_x, int thread, int threads)
{
    const int64_t x = int64_t{at.x} * C.x + first_x, y = int64_t{at.y} * C.y;
    prefetch_output(p.output, OutputBases(p.output, s, at.batch), p.swapped ? y : x, p.swapped ? x : y,
                    p.swapped ? C.y : count_x, p.swapped ? count_x : C.y, thread, threads);
}

// Producer: a warp fills the stages with k tiles first ... last - 1 of a tile. All lanes wait and one, the
// leader, loads: in a branch of one lane ptxas would keep the addresses out of uniform registers. The
// kernels in front are waited for at k tile `waits_at`: all that its loads need has been found by then. The
// arrive comes behind the loads, which it would delay; until then the barrier cannot complete.
template <Config C, Major MX, Major MY, typename At>
__device__ inline void load_tile(const Params& p, const Member& member, const Stages<C, MY>& stages,
                                 Ring<Smem<C, MY>::stages>& ring, const At& at, int32_t first, int32_t last,
                                 int32_t waits_at, bool leader)
{
    for (int32_t i = first; i < last; ++i, ring.advance()) {
        const uint32_t full = stages.full(ring.stage);
        ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
        if (i == waits_at)
            ptx::wait_for_earlier_grids();
        if (leader) {
            load_stage<C, MX, MY>(p, member, stages.x(ring.stage), full, at, i * tile_k);
            ptx::mbarrier_arrive_expect_tx(full, sizeof(typename Smem<C, MY>::Stage));
        }
        __syncwarp();
        if (i == waits_at && p.early)
            ptx::launch_dependents();
    }
}

// Descriptor of the operand at `smem`, rows and k from there on.
template <Major M>
__device__ inline uint64_t operand_descriptor(uint32_t smem)
{
    constexpr int atom = 8 * span_bytes;
    return M == Major::K ? ptx::wgmma_descriptor(smem, 0, atom)
                         : ptx::wgmma_descriptor(smem, tile_k * span_bytes, atom);
}

// What a descriptor grows by from one k step to the next; its address field counts 16 bytes.
template <Major M>
constexpr uint64_t k_step = (M == Major::K ? 2 * wgmma_k : wgmma_k * span_bytes) / 16;

// 64 rows of x, whichever dimension is contiguous.
constexpr int block_bytes = 64 * tile_k * 2;

template <Config C>
using Accumulator = float[C.blocks()][C.y / 2];

// A warp gives a stage back, to all producers that fill parts of it.
template <Config C>
__device__ inline void release_stage(const Member& member, uint32_t empty, uint32_t lane)
{
    if constexpr (C.ctas() > 1) {
        const int32_t x = member.x<C>(), y = member.y<C>(), i = static_cast<int32_t>(lane);
        const int32_t other_y = i - C.cluster + (i - C.cluster >= y);
        if (i < C.senders())
            ptx::mbarrier_arrive_cluster(ptx::map_shared(
                empty, i < C.cluster ? member.rank_of<C>(i, y) : member.rank_of<C>(x, other_y)));
    } else if (lane == 0) {
        ptx::mbarrier_arrive(empty);
    }
}

// Consumer: multiply k_tiles stages, its rows of x beginning with `first_block`. A stage is released one
// k tile late, when the wgmma behind its own has been issued. A split kernel does not release stages that
// will not be filled again, since a neighbour might have left. `begin` is called in front of each k tile,
// `issued` once all wgmma are on their way.
template <Config C, Type T, Major MX, Major MY, typename Begin, typename Issued>
__device__ inline void multiply_tile(Accumulator<C>& acc, const Member& member, const Stages<C, MY>& stages,
                                     Ring<Smem<C, MY>::stages>& ring, int32_t k_tiles, int first_block,
                                     Begin begin, Issued issued)
{
    if (k_tiles == 0) {
        issued();
#pragma unroll
        for (auto& block : acc)
#pragma unroll
            for (float& v : block)
                v = 0.0f;
        return;
    }
    const uint32_t lane = ptx::lane_id();
    const uint64_t first_x = operand_descriptor<MX>(stages.x(0) + first_block * block_bytes);
    const uint64_t first_y = operand_descriptor<MY>(stages.y(0));
    uint32_t previous = 0;
    for (int32_t i = 0; i < k_tiles; ++i, ring.advance()) {
        const uint32_t step_to_stage = ring.stage * (sizeof(typename Smem<C, MY>::Stage) / 16);
        const uint64_t x = first_x + step_to_stage, y = first_y + step_to_stage;
        begin(i);
        ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
        ptx::wgmma_fence();
#pragma unroll
        for (int step = 0; step < tile_k / wgmma_k; ++step)
#pragma unroll
            for (int block = 0; block < C.blocks(); ++block)
                ptx::wgmma_m64k16<T, MX, MY>(acc[block], x + block * (block_bytes / 16) + step * k_step<MX>,
                                             y + step * k_step<MY>, i > 0 || step > 0);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();
        if (i > 0 && (!C.is_split() || i - 1 + Smem<C, MY>::stages < k_tiles))
            release_stage<C>(member, previous, lane);
        previous = stages.empty(ring.stage);
    }
    issued();
    ptx::wgmma_wait_group<0>();
#pragma unroll
    for (auto& block : acc)
#pragma unroll
        for (float& v : block)
            ptx::wgmma_settle(v);
    if constexpr (!C.is_split())
        release_stage<C>(member, previous, lane);
}

// One thread, first of all, then init_barriers(). Like all that comes before wait_for_earlier_grids(),
// which each role calls, it overlaps with the end of earlier kernels on the stream.
__device__ inline void prefetch_maps(const Params& p)
{
    ptx::prefetch_tensormap(&p.x);
    ptx::prefetch_tensormap(&p.y);
    if (p.tma_store)
        ptx::prefetch_tensormap(&p.d);
}

template <Config C, Major MY>
__device__ inline void init_barriers(Smem<C, MY>& smem)
{
    for (int i = 0; i < Smem<C, MY>::stages; ++i) {
        ptx::mbarrier_init(ptx::shared_address(&smem.full[i]), 1);
        ptx::mbarrier_init(ptx::shared_address(&smem.empty[i]), C.readers() * C.senders());
    }
    if constexpr (C.kind == Kind::PingPong) {
        for (uint64_t& turn : smem.turn)
            ptx::mbarrier_init(ptx::shared_address(&turn), 4);
        for (auto& of_consumer : smem.of_c)
            for (uint64_t& box : of_consumer)
                ptx::mbarrier_init(ptx::shared_address(&box), 1);
        for (uint64_t& number : smem.announced)
            ptx::mbarrier_init(ptx::shared_address(&number), 1);
    }
    ptx::fence_mbarrier_init();
}

// The producer and the consumers, once they have done what needs no barrier. Where only slices of k make up
// the cluster, its barrier is waited for later.
template <Config C>
__device__ inline void meet(const Params& p)
{
    ptx::bar_sync(0, C.working_threads());
    if (C.ctas() > 1 || (C.kind == Kind::Split && p.split > 1))
        ptx::cluster_arrive_relaxed();
    if constexpr (C.ctas() > 1)
        ptx::cluster_wait();
}

// Producer: all that comes before its first load, which is k tile `first` of the tile at `at`. Returns the
// k tile at which load_tile() has to wait for the kernels in front: no_k_tile, if there is nothing to load
// or if alpha, which has to be looked at first, lies on the device.
template <Config C, Major MX, Major MY>
__device__ inline int32_t begin_loads(const Params& p, const Member& member, const Position& at,
                                      int32_t first, int32_t last, bool leader)
{
    if (leader)
        prefetch_tile<C, MX, MY>(p, member, at, first, last);
    __syncwarp();
    meet<C>(p);
    if (first < last && !p.output.alpha_device)
        return first;
    ptx::wait_for_earlier_grids();
    if (p.early)
        ptx::launch_dependents();
    return no_k_tile;
}

}  // namespace hg::sm90
