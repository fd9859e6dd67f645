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

#include "arch/common/finish.cuh"
#include "arch/common/groups.cuh"
#include "arch/common/params.hpp"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ptx/wgmma.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstddef>
#include <cstdint>

namespace hg::sm90 {

constexpr int wgmma_k = 16;
constexpr int32_t no_k_tile = -1;

// This CTA's place in its cluster: C.cluster neighbours along x, by C.across along y, for each slice of k.
struct ClusterCoord {
    int32_t cta, slice;

    template <Config C>
    __device__ int32_t m() const
    {
        return cta % C.cluster_m;
    }
    template <Config C>
    __device__ int32_t n() const
    {
        return cta / C.cluster_m;
    }
    // Rank in the cluster of the CTA of this slice at (x, y).
    template <Config C>
    __device__ uint32_t rank_of(int32_t m, int32_t n) const
    {
        return (C.is_global() ? 0 : slice * C.ctas()) + n * C.cluster_m + m;
    }

    template <Config C>
    __device__ static ClusterCoord here()
    {
        const auto rank = static_cast<int32_t>(ptx::cluster_ctarank());
        return {rank % C.ctas(), rank / C.ctas()};
    }

    // In a cluster that has no other slice.
    template <Config C>
    __device__ static ClusterCoord of_slice(int32_t slice)
    {
        return {C.ctas() == 1 ? 0 : static_cast<int32_t>(ptx::cluster_ctarank()), slice};
    }
};

// The number of this CTA's cluster, which counts as number `launched`: it says what the cluster computes.
__device__ inline int32_t remapped_cluster(const Params& p, int32_t launched_clusters)
{
    return p.remapped ? p.remap[launched_clusters] : launched_clusters;
}

template <Config C>
__device__ inline TileCoord position_of(const Params& p, const ClusterCoord& coord, int32_t index)
{
    const Tile tile = tile_at(p.grid, index);
    const int32_t m = p.raster_along_n ? tile.n : tile.m, n = p.raster_along_n ? tile.m : tile.n;
    return {m * C.cluster_m + coord.m<C>(), n * C.cluster_n + coord.n<C>(), tile.batch};
}

// The same in all lanes of a warp, and known to be.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffff, value, 0); }

// The first row of x of a tile, also of one of groups.
template <Config C>
__device__ inline int32_t first_m(const TileCoord& at)
{
    return at.m * C.tile_m;
}
template <Config C>
__device__ inline int32_t first_m(const GroupTile& at)
{
    return at.row;
}

// Where it is, nothing is loaded. An alpha that the host knows to be 0 comes as k = 0, to other kernels.
__device__ inline bool is_alpha_zero_on_device(const OutputParams& o)
{
    return o.alpha_device && *o.alpha_device == 0.0f;
}

// Shared addresses of what the stages consist of.
template <Config C, Major MB>
struct Stages {
    using Layout = Smem<C, MB>;
    uint32_t base;

    __device__ explicit Stages(const Layout& smem) : base(ptx::shared_address_once(&smem)) {}
    __device__ uint32_t a(uint32_t stage) const { return base + stage * sizeof(typename Layout::Stage); }
    __device__ uint32_t b(uint32_t stage) const { return a(stage) + a_bytes(C); }
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
template <Config C, Major MA, Major MB, typename At>
__device__ inline void load_stage(const Params& p, const ClusterCoord& coord, uint32_t a_smem, uint32_t bar,
                                  const At& at, int32_t k)
{
    constexpr uint32_t along_m = (1u << C.cluster_m) - 1;
    constexpr uint32_t along_n = ((1u << C.ctas()) - 1) / along_m;  // every C.cluster-th bit
    const int32_t m = coord.m<C>(), n = coord.n<C>();
    load_operand<C.tile_m, C.cluster_n, MA>(a_smem, &p.a, bar, first_m<C>(at), k, at.batch * p.a_batch_step,
                                            n, along_n << coord.rank_of<C>(m, 0), p.a_policy);
    load_operand<C.tile_n, C.cluster_m, MB>(a_smem + a_bytes(C), &p.b, bar, at.n * C.tile_n, k,
                                            at.batch * p.b_batch_step, m, along_m << coord.rank_of<C>(0, n),
                                            p.b_policy);
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
template <Config C, Major MA, Major MB>
__device__ inline void prefetch_tile(const Params& p, const ClusterCoord& coord, const TileCoord& at,
                                     int32_t first, int32_t last)
{
    const int32_t m = coord.m<C>(), n = coord.n<C>(), end = min(last, first + p.prefetched);
#pragma unroll 1
    for (int32_t k = first * tile_k; k < end * tile_k; k += tile_k) {
        if (at.n == n)
            prefetch_operand<C.tile_m, C.cluster_n, MA>(&p.a, at.m * C.tile_m, k, at.batch * p.a_batch_step,
                                                        n);
        if (at.m == m)
            prefetch_operand<C.tile_n, C.cluster_m, MB>(&p.b, at.n * C.tile_n, k, at.batch * p.b_batch_step,
                                                        m);
    }
}

// Consumers ask L2 for what the epilogue of `count_m` x from `first_m` on of a tile will read. Thread
// number `thread` of `threads`.
template <Config C>
__device__ inline void prefetch_tile_output(const Params& p, const Scalars& s, const TileCoord& at,
                                            int first_m, int count_m, int thread, int threads)
{
    const int64_t m = int64_t{at.m} * C.tile_m + first_m, n = int64_t{at.n} * C.tile_n;
    prefetch_output(p.output, OutputBases(p.output, s, at.batch), p.swap_ab ? n : m, p.swap_ab ? m : n,
                    p.swap_ab ? C.tile_n : count_m, p.swap_ab ? count_m : C.tile_n, thread, threads);
}

// Producer: a warp fills the stages with k tiles first ... last - 1 of a tile. All lanes wait and one, the
// leader, loads: in a branch of one lane ptxas would keep the addresses out of uniform registers. The
// kernels in front are waited for at k tile `waits_at`: all that its loads need has been found by then. The
// arrive comes behind the loads, which it would delay; until then the barrier cannot complete.
template <Config C, Major MA, Major MB, typename At>
__device__ inline void load_tile(const Params& p, const ClusterCoord& coord, const Stages<C, MB>& stages,
                                 Ring<Smem<C, MB>::stages>& ring, const At& at, int32_t first, int32_t last,
                                 int32_t waits_at, bool leader)
{
    for (int32_t i = first; i < last; ++i, ring.advance()) {
        const uint32_t full = stages.full(ring.stage);
        ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
        if (i == waits_at)
            ptx::wait_for_earlier_grids();
        if (leader) {
            load_stage<C, MA, MB>(p, coord, stages.a(ring.stage), full, at, i * tile_k);
            ptx::mbarrier_arrive_expect_tx(full, sizeof(typename Smem<C, MB>::Stage));
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
using Accumulator = float[C.blocks()][C.tile_n / 2];

// A warp gives a stage back, to all producers that fill parts of it.
template <Config C>
__device__ inline void release_stage(const ClusterCoord& coord, uint32_t empty, uint32_t lane)
{
    if constexpr (C.ctas() > 1) {
        const int32_t m = coord.m<C>(), n = coord.n<C>(), i = static_cast<int32_t>(lane);
        const int32_t other_n = i - C.cluster_m + (i - C.cluster_m >= n);
        if (i < C.senders())
            ptx::mbarrier_arrive_cluster(ptx::map_shared(
                empty, i < C.cluster_m ? coord.rank_of<C>(i, n) : coord.rank_of<C>(m, other_n)));
    } else if (lane == 0) {
        ptx::mbarrier_arrive(empty);
    }
}

// Consumer: multiply k_tiles stages, its rows of x beginning with `first_block`. A stage is released one
// k tile late, when the wgmma behind its own has been issued. A split kernel does not release stages that
// will not be filled again, since a neighbour might have left. `begin` is called in front of each k tile,
// `issued` once all wgmma are on their way.
template <Config C, Type T, Major MA, Major MB, typename Begin, typename Issued>
__device__ inline void multiply_tile(Accumulator<C>& acc, const ClusterCoord& coord,
                                     const Stages<C, MB>& stages, Ring<Smem<C, MB>::stages>& ring,
                                     int32_t k_tiles, int first_block, Begin begin, Issued issued)
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
    const uint64_t first_a = operand_descriptor<MA>(stages.a(0) + first_block * block_bytes);
    const uint64_t first_b = operand_descriptor<MB>(stages.b(0));
    uint32_t previous = 0;
    for (int32_t i = 0; i < k_tiles; ++i, ring.advance()) {
        const uint32_t step_to_stage = ring.stage * (sizeof(typename Smem<C, MB>::Stage) / 16);
        const uint64_t a = first_a + step_to_stage, b = first_b + step_to_stage;
        begin(i);
        ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
        ptx::wgmma_fence();
#pragma unroll
        for (int step = 0; step < tile_k / wgmma_k; ++step)
#pragma unroll
            for (int block = 0; block < C.blocks(); ++block)
                ptx::wgmma_m64k16<T, MA, MB>(acc[block], a + block * (block_bytes / 16) + step * k_step<MA>,
                                             b + step * k_step<MB>, i > 0 || step > 0);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();
        if (i > 0 && (!C.is_split() || i - 1 + Smem<C, MB>::stages < k_tiles))
            release_stage<C>(coord, previous, lane);
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
        release_stage<C>(coord, previous, lane);
}

// One thread, first of all, then init_barriers(). Like all that comes before wait_for_earlier_grids(),
// which each role calls, it overlaps with the end of earlier kernels on the stream.
__device__ inline void prefetch_maps(const Params& p)
{
    ptx::prefetch_tensormap(&p.a);
    ptx::prefetch_tensormap(&p.b);
    if (p.tma_store)
        ptx::prefetch_tensormap(&p.d);
}

template <Config C, Major MB>
__device__ inline void init_barriers(Smem<C, MB>& smem)
{
    for (int i = 0; i < Smem<C, MB>::stages; ++i) {
        ptx::mbarrier_init(ptx::shared_address(&smem.full[i]), 1);
        ptx::mbarrier_init(ptx::shared_address(&smem.empty[i]), C.readers() * C.senders());
    }
    if constexpr (C.schedule == Schedule::PingPong) {
        for (uint64_t& mma_order : smem.mma_order)
            ptx::mbarrier_init(ptx::shared_address(&mma_order), 4);
        for (auto& of_consumer : smem.c_full)
            for (uint64_t& box : of_consumer)
                ptx::mbarrier_init(ptx::shared_address(&box), 1);
        for (uint64_t& number : smem.tile_full)
            ptx::mbarrier_init(ptx::shared_address(&number), 1);
    }
    ptx::fence_mbarrier_init();
}

// The producer and the consumers, once they have done what needs no barrier. Where only slices of k make up
// the cluster, its barrier is waited for later.
template <Config C>
__device__ inline void sync_roles(const Params& p)
{
    ptx::bar_sync(0, C.working_threads());
    if (C.ctas() > 1 || (C.schedule == Schedule::SplitK && p.split > 1))
        ptx::cluster_arrive_relaxed();
    if constexpr (C.ctas() > 1)
        ptx::cluster_wait();
}

// Producer: all that comes before its first load, which is k tile `first` of the tile at `at`. Returns the
// k tile at which load_tile() has to wait for the kernels in front: no_k_tile, if there is nothing to load
// or if alpha, which has to be looked at first, lies on the device.
template <Config C, Major MA, Major MB>
__device__ inline int32_t begin_loads(const Params& p, const ClusterCoord& coord, const TileCoord& at,
                                      int32_t first, int32_t last, bool leader)
{
    if (leader)
        prefetch_tile<C, MA, MB>(p, coord, at, first, last);
    __syncwarp();
    sync_roles<C>(p);
    if (first < last && !p.output.alpha_device)
        return first;
    ptx::wait_for_earlier_grids();
    if (p.early)
        ptx::launch_dependents();
    return no_k_tile;
}

}  // namespace hg::sm90
