// Grouped GEMM: groups of rows, each multiplied by its own B, whose sizes lie in device memory. Persistent
// CTAs with one producer and two consumers in ping-pong order, as in kernel.cuh. Each role computes by
// itself which tiles its CTA works on.
//
// A tile that lies inside its group is stored like any other. In the last tile of a group, rows past the
// group's end belong to the next group, or to no group: the general epilogue stores only the rows before
// it, without TMA.
//
// Barriers: those of mainloop.cuh, scheduler.cuh, kernel.cuh and epilogue_fused.cuh.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/groups.cuh"
#include "arch/common/params.hpp"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/epilogue.cuh"
#include "arch/sm90/persistent/epilogue_fused.cuh"
#include "arch/sm90/persistent/epilogue_general.cuh"
#include "arch/sm90/persistent/gated.cuh"
#include "arch/sm90/persistent/k_groups.cuh"
#include "arch/sm90/persistent/kernel.cuh"
#include "arch/sm90/persistent/scheduler.cuh"
#include "arch/sm90/persistent/staging.cuh"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

// True if all rows of the tile belong to its group.
template <Config C>
__device__ inline bool is_full_tile(const GroupTile& at)
{
    return at.end - at.row >= C.tile_m;
}

// The tiles of a cluster: every so many, or those whose indices it fetches from the tile counter, as in
// scheduler.cuh.
template <Config C, Major MB>
class GroupScheduler {
public:
    // `smem`: shared address of Smem.
    __device__ GroupScheduler(const Params& p, const ClusterCoord& coord, uint32_t smem)
        : p_(p), coord_(coord), index_(static_cast<int32_t>(blockIdx.x / C.ctas())),
          walk_(p.groups, p.group_count, p.output.m, p.group_tiles_n, index_), queue_(smem),
          dynamic_(can_schedule_dynamically(C) && p.tile_counter)
    {
    }

    // False at the end. Called by whole warps.
    __device__ bool next(GroupTile& at)
    {
        if (!first_) {
            const int32_t next = dynamic_ ? queue_.read() : index_ + clusters();
            walk_.advance(next - index_);
            index_ = next;
        }
        first_ = false;
        if (!walk_.find(at))
            return false;
        at = {uniform(at.row), uniform(at.end), uniform((at.n * C.cluster_n + coord_.n<C>()) * C.tile_n),
              uniform(at.batch)};
        return true;
    }

    // One thread of the consumer that multiplies what next() has just returned fetches the tile after it.
    __device__ void fetch_next() const
    {
        if (!dynamic_)
            return;
        queue_.expect();
        if (coord_.cta == 0)
            queue_.send(ptx::atomic_add_relaxed_gpu(p_.tile_counter, 1) + clusters());
    }

    // One thread, once next() has returned false. A cluster fetches one index for each tile that it
    // multiplies, so that the indices past the end are as many as the clusters: the cluster with the
    // highest sets the counter to 0.
    __device__ void reset_counter() const
    {
        if (dynamic_ && coord_.cta == 0 && walk_.past_end() == clusters() - 1)
            ptx::store_relaxed_gpu(p_.tile_counter, 0);
    }

private:
    const Params& p_;
    const ClusterCoord coord_;
    int32_t index_;
    GroupWalk<C.tile_m> walk_;
    TileQueue<C, MB> queue_;
    const bool dynamic_;
    bool first_ = true;

    __device__ static int32_t clusters() { return static_cast<int32_t>(gridDim.x / C.ctas()); }
};

// For consumers: see for_each_work().
template <Config C, Major MB, typename Body>
__device__ inline void for_each_group_tile(GroupScheduler<C, MB>& scheduler, Body body)
{
    for (GroupTile at; scheduler.next(at);)
        body(at);
}

template <Config C, Major MA, Major MB>
__device__ inline void produce_groups(const Params& p, Smem<C, MB>& smem)
{
    const Stages<C, MB> stages(smem);
    const bool leader = ptx::elect_one();
    const auto coord = ClusterCoord::here<C>();
    sync_roles<C>(p);
    ptx::wait_for_earlier_grids();
    auto ring = Ring<Smem<C, MB>::stages>::writer();
    GroupScheduler<C, MB> scheduler(p, coord, stages.base);
    for_each_group_tile(scheduler, [&](const GroupTile& at) {
        load_tile<C, MA, MB>(p, coord, stages, ring, at, 0, p.k_tiles, no_k_tile, leader);
    });
    // Wait until all stages are empty, as produce() does.
    if constexpr (C.ctas() > 1)
#pragma unroll 1
        for (int i = 0; i < Smem<C, MB>::stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
}

// Contiguous groups lie in one matrix D, groups with counts in a matrix each.
template <Config C, Major MB>
__device__ inline Block block_of(const Params& p, Smem<C, MB>& smem, const GroupTile& at, int consumer)
{
    Block block = Block::of<C>(smem, {0, at.n, p.groups.masked() ? at.batch : 0}, consumer, 0);
    block.m = at.row;
    return block;
}

template <Config C, Type T, Major MB>
__device__ inline void store_group_tile(const Params& p, const Scalars& s, Accumulator<C>& acc,
                                        const GroupTile& tile, const Block& at)
{
    if constexpr (C.is_gated()) {
        if (is_full_tile<C>(tile))
            store_gated_tile<C, T, MB>(p, s, acc, at, tile.end);
        else
            store_last_gated_tile<C, T, MB>(p, s, acc, at, tile.end);
        return;
    }
    if (is_full_tile<C>(tile) && p.epilogue != Epilogue::General)
        return store_tile<C, T>(p, s, acc, at);
    // The general epilogue expects that no TMA store still reads the staging buffers.
    if (at.leads())
        ptx::bulk_wait_group_read<0>();
    OutputParams group_output = p.output;
    group_output.m = tile.end;
    store_general<C, T>(p, group_output, false, s, acc, at);
}

// Each consumer multiplies every other tile and skips the stages of the tiles in between.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_groups(const Params& p, Smem<C, MB>& smem, int consumer)
{
    const Stages<C, MB> stages(smem);
    const auto coord = ClusterCoord::here<C>();
    MmaOrder<C, MB> order(smem, consumer);
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    GroupScheduler<C, MB> scheduler(p, coord, stages.base);
    for_each_group_tile(scheduler, [&](const GroupTile& tile) {
        if (order.is_mine()) {
            Accumulator<C> acc;
            if (threadIdx.x % 128 == 0)
                scheduler.fetch_next();
            const Block at = block_of<C>(p, smem, tile, consumer);
            if constexpr (fuses_c(C)) {
                if (is_full_tile<C>(tile) && adds_c_fused(p, scalars)) {
                    // All threads have read what the general epilogue staged for the tile before.
                    ptx::fence_proxy_async();
                    ptx::bar_sync(1 + consumer, 128);
                    begin_loading_c<C>(p, at);
                }
            }
            if (p.output.bias_along != BiasAlong::None) [[unlikely]]
                stage_bias<C, MB>(p, smem.bias[consumer], {tile.row, tile.n, tile.batch}, 0);
            order.wait();
            multiply_tile<C, T, MA, MB>(
                acc, coord, stages, ring, p.k_tiles, 0, [](int32_t) {}, [&] { order.pass(); });
            store_group_tile<C, T, MB>(p, scalars, acc, tile, at);
        } else {
            ring.advance(p.k_tiles);
        }
        order.advance();
    });
    if (threadIdx.x == 128)
        scheduler.reset_counter();
}

// Groups of rows for K-major A, groups of K for MN-major A and B.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void run_groups(const Params& p, Smem<C, MB>& smem)
{
    static_assert(C.schedule == Schedule::PingPong && C.cluster_m == 1 && fuses_all(C));
    const int warp = uniform(threadIdx.x / 32);
    if (warp < 4) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (warp == 0) {
            if constexpr (MA == Major::MN)
                produce_k_groups<C, MA, MB>(p, smem);
            else
                produce_groups<C, MA, MB>(p, smem);
        }
    } else {
        if (threadIdx.x == 128) {
            if (p.k_tiles > 0)
                prefetch_maps(p);
            init_barriers<C>(smem);
        }
        sync_roles<C>(p);
        ptx::setmaxnreg_inc<consumer_registers>();
        if constexpr (MA == Major::MN)
            consume_k_groups<C, T, MA, MB>(p, smem, warp / 4 - 1);
        else
            consume_groups<C, T, MA, MB>(p, smem, warp / 4 - 1);
        ptx::launch_dependents();
        ptx::bulk_wait_group<0>();
    }
}

}  // namespace hg::sm90
