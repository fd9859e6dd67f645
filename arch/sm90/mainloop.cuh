// The main loop that the persistent and split-K kernels share: a producer fills the stages, consumers
// multiply them.
//
// Barriers, one of each per stage:
//   full[s]    producer -> consumers. Count 1: the producer's arrive, which also expects the bytes of A and
//              B; completes when those bytes have landed. In a cluster each CTA's producer multicasts its
//              share of A and B, so that bytes come from several producers to the same barrier.
//   empty[s]   consumers -> producers. Count C.readers() * C.senders(): one lane of each warp that reads
//              the stage, in every CTA to which this CTA's producer sends, once wgmma.wait_group says that
//              the wgmma has finished.
// Barriers used once:
//   named barrier 0   the producer and the consumers: this CTA's barriers are initialised and, in a split-K
//                     kernel, prepare_split() has told the consumers which tile they compute.
//   cluster barrier   all CTAs of a cluster with multicast: the barriers of all CTAs are initialised.
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
#include "arch/common/triangle_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/operand.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstddef>
#include <cstdint>

namespace hg::sm90 {

constexpr int wgmma_k = 16;
constexpr int32_t no_k_tile = -1;

// This CTA's place in its cluster: cluster_m CTAs along M by cluster_n along N, for each slice of K.
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
    // Rank in the cluster of the CTA at (m, n) of this slice.
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

    // SplitKGlobal: all CTAs of the cluster belong to this slice.
    template <Config C>
    __device__ static ClusterCoord of_slice(int32_t slice)
    {
        return {C.ctas() == 1 ? 0 : static_cast<int32_t>(ptx::cluster_ctarank()), slice};
    }
};

// The index that this CTA's cluster works under: its launch index, or what the GPC remap makes of it.
__device__ inline int32_t remapped_cluster(const Params& p, int32_t launch_index)
{
    return p.remapped ? p.remap[launch_index] : launch_index;
}

// Where tile number `tile` begins, at `last` at most: see last_tile() in choose/details.cpp.
__device__ inline int32_t tile_start(int32_t tile, int size, int32_t last)
{
    return static_cast<int32_t>(min(static_cast<uint32_t>(tile) * size, static_cast<uint32_t>(last)));
}

template <Config C>
__device__ inline TileCoord tile_coord(const Params& p, const ClusterCoord& coord, int32_t index)
{
    if constexpr (C.triangle) {
        const Tile tile = tile_of_triangle(p.triangle, index);
        return {(p.upper ? tile.m : tile.n) * C.tile_m, (p.upper ? tile.n : tile.m) * C.tile_n, tile.batch};
    }
    const Tile tile = tile_at(p.grid, index);
    const int32_t m = p.raster_along_n ? tile.n : tile.m, n = p.raster_along_n ? tile.m : tile.n;
    return {tile_start(m * C.cluster_m + coord.m<C>(), C.tile_m, p.last_m),
            tile_start(n * C.cluster_n + coord.n<C>(), C.tile_n, p.last_n), tile.batch};
}

// Lane 0's value in all lanes; the shuffle lets the compiler keep it in a uniform register.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffff, value, 0); }

// First row of A of a tile, or of a tile of a group.
__device__ inline int32_t first_m(const TileCoord& at) { return at.m; }
__device__ inline int32_t first_m(const GroupTile& at) { return at.row; }

// The producer then loads nothing. The host turns an alpha that it knows to be 0 into K = 0.
__device__ inline bool is_alpha_zero_on_device(const OutputParams& o)
{
    return o.alpha_device && *o.alpha_device == 0.0f;
}

// Shared addresses of the stages and of their barriers.
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

// `at`: a TileCoord, or a GroupTile whose n is a column.
template <Config C, Major MA, Major MB, typename At>
__device__ inline void load_stage(const Params& p, const ClusterCoord& coord, uint32_t a_smem, uint32_t bar,
                                  const At& at, int32_t k)
{
    constexpr uint32_t ranks_along_m = (1u << C.cluster_m) - 1;
    constexpr uint32_t ranks_along_n = ((1u << C.ctas()) - 1) / ranks_along_m;  // every cluster_m-th bit
    const int32_t m = coord.m<C>(), n = coord.n<C>();
    load_operand<C.tile_m, C.cluster_n, MA, C.gates == Gates::AlongM>(
        p, &p.a, a_smem, bar, first_m(at), k, at.batch * p.a_batch_step, n,
        ranks_along_n << coord.rank_of<C>(m, 0), p.a_policy);
    load_operand<C.tile_n, C.cluster_m, MB, C.gates == Gates::AlongN>(
        p, &p.b, a_smem + a_bytes(C), bar, at.n, k, at.batch * p.b_batch_step, m,
        ranks_along_m << coord.rank_of<C>(0, n), p.b_policy);
}

// One thread prefetches K tiles first ... last - 1 into L2, but at most Params::prefetched of them. Earlier
// kernels may still write the operands: their writes go to L2 as well. Of the clusters in a row or column
// of tiles only the one at its start prefetches the operand that they share.
template <Config C, Major MA, Major MB>
__device__ inline void prefetch_tile(const Params& p, const ClusterCoord& coord, const TileCoord& at,
                                     int32_t first, int32_t last)
{
    const int32_t m = coord.m<C>(), n = coord.n<C>(), end = min(last, first + p.prefetched);
#pragma unroll 1
    for (int32_t k = first * tile_k; k < end * tile_k; k += tile_k) {
        if (at.n == tile_start(n, C.tile_n, p.last_n))
            prefetch_operand<C.tile_m, C.cluster_n, MA, C.gates == Gates::AlongM>(
                p, &p.a, at.m, k, at.batch * p.a_batch_step, n);
        if (at.m == tile_start(m, C.tile_m, p.last_m))
            prefetch_operand<C.tile_n, C.cluster_m, MB, C.gates == Gates::AlongN>(
                p, &p.b, at.n, k, at.batch * p.b_batch_step, m);
    }
}

// Prefetches into L2 what the epilogue will read: rows first_m ... first_m + count_m - 1 of the tile.
// Called by thread `thread` of `threads`.
template <Config C>
__device__ inline void prefetch_tile_output(const Params& p, const Scalars& s, const TileCoord& at,
                                            int first_m, int count_m, int thread, int threads)
{
    const int64_t m = int64_t{at.m} + first_m, n = at.n;
    prefetch_output(p.output, OutputBases(p.output, s, at.batch), p.swap_ab ? n : m, p.swap_ab ? m : n,
                    p.swap_ab ? C.tile_n : count_m, p.swap_ab ? count_m : C.tile_n, thread, threads);
}

// Producer: a warp fills the stages with K tiles first ... last - 1 of a tile. All lanes wait and one, the
// leader, loads: in a branch of one lane ptxas would keep the addresses out of uniform registers. The warp
// waits for earlier kernels only at K tile `waits_at`, when it has computed all that the load needs. The
// arrive follows the loads, which it would delay; the barrier cannot complete before it. Nothing else may
// be in the loop: ptxas would compute the loads' operands anew for each K tile, after the wait.
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
        if (i == waits_at && p.pdl_early)
            ptx::launch_dependents();
    }
}

// Descriptor of an operand at `smem`, the address of its first row and K.
template <Major M>
__device__ inline uint64_t operand_descriptor(uint32_t smem)
{
    constexpr int atom = 8 * span_bytes;
    return M == Major::K ? ptx::wgmma_descriptor(smem, 0, atom)
                         : ptx::wgmma_descriptor(smem, tile_k * span_bytes, atom);
}

// Added to a descriptor for the next K step; the descriptor's address field counts 16 bytes.
template <Major M>
constexpr uint64_t k_step = (M == Major::K ? 2 * wgmma_k : wgmma_k * span_bytes) / 16;

// 64 rows of A in a stage, whichever dimension is contiguous.
constexpr int block_bytes = 64 * tile_k * 2;

template <Config C>
using Accumulator = float[C.blocks()][C.tile_n / 2];

// A warp releases a stage to every producer that fills a share of it.
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

// Consumer: multiplies k_tiles stages; its rows of A begin with block `first_block`. It releases a stage
// one K tile late, after issuing the wgmma of the next one. A split-K kernel does not release stages that
// its producer will not fill again, since a neighbour CTA might have exited: `later` K tiles of the slice
// follow. multiply_tile() calls `begin` before each K tile and `issued` after issuing the last wgmma.
template <Config C, Type T, Major MA, Major MB, typename Begin, typename Issued>
__device__ inline void multiply_tile(Accumulator<C>& acc, const ClusterCoord& coord,
                                     const Stages<C, MB>& stages, Ring<Smem<C, MB>::stages>& ring,
                                     int32_t k_tiles, int first_block, Begin begin, Issued issued,
                                     int32_t later = 0)
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
        if (i > 0 && (!C.is_split() || i - 1 + Smem<C, MB>::stages < k_tiles + later))
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
    if (!C.is_split() || (C.tree && Smem<C, MB>::stages <= later))
        release_stage<C>(coord, previous, lane);
}

// One thread, first of all, then init_barriers(). Whatever a role does before it calls
// wait_for_earlier_grids() overlaps with the end of earlier kernels on the stream.
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
        for (uint64_t& barrier : smem.mma_order)
            ptx::mbarrier_init(ptx::shared_address(&barrier), 4);
        for (uint64_t& barrier : smem.tile_full)
            ptx::mbarrier_init(ptx::shared_address(&barrier), 1);
    }
    if constexpr (fuses_c(C))
        for (auto& buffers : smem.c_full)
            for (uint64_t& barrier : buffers)
                ptx::mbarrier_init(ptx::shared_address(&barrier), 1);
    ptx::fence_mbarrier_init();
}

// The producer and the consumers synchronise here, after all work that needs no barrier. Where the CTAs of
// a cluster differ in their slice of K alone, they wait for the cluster barrier later, before they exchange
// partial sums.
template <Config C>
__device__ inline void sync_roles(const Params& p)
{
    ptx::bar_sync(0, C.working_threads());
    if (C.ctas() > 1 || (C.schedule == Schedule::SplitK && p.split > 1))
        ptx::cluster_arrive_relaxed();
    if constexpr (C.ctas() > 1)
        ptx::cluster_wait();
}

// Producer: everything before its first load, K tile `first` of the tile `at`. Returns the K tile at which
// load_tile() has to wait for earlier kernels; no_k_tile if this function has waited itself, because there
// is nothing to load or because the producer must read alpha from device memory first.
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
    if (p.pdl_early)
        ptx::launch_dependents();
    return no_k_tile;
}

}  // namespace hg::sm90
