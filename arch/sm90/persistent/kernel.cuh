// Persistent GEMM with TMA, mbarriers and wgmma: a producer warp and two consumer warpgroups per CTA.
//
// Beside the barriers of mainloop.cuh, scheduler.cuh, stream_k.cuh and the epilogues, with PingPong:
//   mma_order[c]   the other consumer -> consumer c. Count 4: one lane of each warp, once the warp has
//                  issued the last wgmma of its tile, so that the tensor cores do not idle between tiles.
//                  It also keeps a consumer within one phase of the full barriers that it waits for.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
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
#include "arch/sm90/persistent/gated.cuh"
#include "arch/sm90/persistent/scheduler.cuh"
#include "arch/sm90/persistent/staging.cuh"
#include "arch/sm90/persistent/stream_k.cuh"
#include "arch/sm90/persistent/triangle.cuh"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/tree/branches.cuh"

#include <cstdint>

namespace hg::sm90 {

template <Config C, Major MA, Major MB>
__device__ inline void produce(const Params& p, Smem<C, MB>& smem)
{
    const Stages<C, MB> stages(smem);
    const bool leader = ptx::elect_one();
    const auto coord = ClusterCoord::here<C>();
    Scheduler<C, MB> scheduler(p, coord, p.k_tiles, stages.base);
    Work work{};
    bool more = scheduler.next(work);
    int32_t waits_at =
        begin_loads<C, MA, MB>(p, coord, work.at, work.first, more ? work.last : work.first, leader);
    const bool nothing = is_alpha_zero_on_device(p.output);
    auto ring = Ring<Smem<C, MB>::stages>::writer();
    for (; more && !nothing; more = scheduler.next(work), waits_at = no_k_tile)
        load_tile<C, MA, MB>(p, coord, stages, ring, work.at, work.first, work.last, waits_at, leader);
    // The last arrives of the neighbour CTAs must find this CTA alive: wait until all stages are empty.
    if constexpr (C.ctas() > 1)
#pragma unroll 1
        for (int i = 0; i < Smem<C, MB>::stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
}

// Before the main loop of a tile: prefetches, loads or stages what its epilogue will read. C is loaded here
// only if this CTA multiplies all K tiles: after a stream-K fix-up only the last contributor loads it.
template <Config C, Major MB>
__device__ inline void prepare_output(const Params& p, const Scalars& scalars, Smem<C, MB>& smem,
                                      const Work& work, int32_t k_tiles, int consumer, int first_block)
{
    if (p.epilogue == Epilogue::Plain) [[likely]]
        return;
    if (reads_c_by_subtile(C) && p.epilogue == Epilogue::General)
        prefetch_tile_output<C>(p, scalars, work.at, first_block * 64, C.blocks() * 64, threadIdx.x % 128,
                                128);
    if constexpr (fuses_c(C)) {
        if (adds_c_fused(p, scalars) && work.k_tiles() == k_tiles)
            begin_loading_c<C>(p, Block::of<C>(smem, work.at, consumer, first_block));
    }
    if (p.output.bias_along != BiasAlong::None)
        stage_bias<C, MB>(p, smem.bias[consumer], work.at, first_block);
}

// Stores a tile, unless another contributor of a stream-K tile will do so.
template <Config C, Type T, Major MB>
__device__ inline void finish(const Params& p, const Scalars& scalars, const ClusterCoord& coord,
                              Smem<C, MB>& smem, const Work& work, int32_t k_tiles, Accumulator<C>& acc,
                              int consumer, int first_block)
{
    const auto at = Block::of<C>(smem, work.at, consumer, first_block);
    if (!C.tree && work.k_tiles() != k_tiles) {
        if (!fix_up<C>(p, StreamKRuns::of<C>(p, k_tiles), coord, work, acc, smem.broadcast[consumer],
                       consumer))
            return;
        if constexpr (fuses_c(C)) {
            if (adds_c_fused(p, scalars))
                begin_loading_c<C>(p, at);
        }
    }
    if constexpr (C.triangle)
        store_triangle_tile<C, T>(p, scalars, acc, at);
    else if constexpr (C.is_gated())
        store_gated_tile<C, T, MB>(p, scalars, acc, at, p.output.m);
    else
        store_tile<C, T>(p, scalars, acc, at);
}

// Both consumers multiply each tile: C.blocks() blocks of 64 rows each.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_cooperative(const Params& p, Smem<C, MB>& smem, int consumer)
{
    const Stages<C, MB> stages(smem);
    const auto coord = ClusterCoord::here<C>();
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : p.k_tiles;
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    for_each_work(Scheduler<C, MB>(p, coord, k_tiles, stages.base), [&](const Work& work,
                                                                        const Scheduler<C, MB>& scheduler) {
        Accumulator<C> acc;
        prepare_output<C>(p, scalars, smem, work, k_tiles, consumer, consumer * C.blocks());
        multiply_tile<C, T, MA, MB>(
            acc, coord, stages, ring, work.k_tiles(), consumer * C.blocks(), [](int32_t) {}, [] {});
        finish<C, T>(p, scalars, coord, smem, work, k_tiles, acc, consumer, consumer * C.blocks());
    });
}

// The same of a tree: what the epilogue gets has been multiplied by alpha.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_leaves(const Params& p, Smem<C, MB>& smem, int consumer)
{
    const Stages<C, MB> stages(smem);
    const auto coord = ClusterCoord::here<C>();
    ptx::wait_for_earlier_grids();
    Scalars scalars = load_scalars(p.output);
    const float alpha = scalars.alpha;
    const int32_t k_tiles = alpha == 0.0f ? 0 : p.k_tiles;
    scalars.alpha = 1.0f;
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    for_each_work(Scheduler<C, MB>(p, coord, k_tiles, stages.base), [&](const Work& work,
                                                                        const Scheduler<C, MB>&) {
        prepare_output<C>(p, scalars, smem, work, k_tiles, consumer, consumer * C.blocks());
        multiply_leaves<C, T, MA, MB>(
            p, alpha, coord, stages, ring, k_tiles, consumer, [&](Accumulator<C>& acc) {
                finish<C, T>(p, scalars, coord, smem, work, k_tiles, acc, consumer, consumer * C.blocks());
            });
    });
}

// The order in which the two consumers of a ping-pong kernel use the tensor cores: they alternate, tile by
// tile.
template <Config C, Major MB>
class MmaOrder {
public:
    __device__ MmaOrder(Smem<C, MB>& smem, int consumer)
        : consumer_(consumer), mine_(ptx::shared_address(&smem.mma_order[consumer])),
          other_(ptx::shared_address(&smem.mma_order[1 - consumer])),
          phase_(consumer == 0)  // consumer 0 does not wait before its first tile
    {
    }

    // True if this consumer multiplies the current tile.
    __device__ bool is_mine() const { return tile_consumer_ == consumer_; }
    // Waits until the other consumer has issued every wgmma of its tile.
    __device__ void wait()
    {
        ptx::mbarrier_wait_parity(mine_, phase_);
        phase_ ^= 1;
    }
    // Call once every wgmma of this tile is issued.
    __device__ void pass() const
    {
        if (threadIdx.x % 32 == 0)
            ptx::mbarrier_arrive(other_);
    }
    __device__ void advance() { tile_consumer_ ^= 1; }

private:
    const int consumer_;
    const uint32_t mine_, other_;
    uint32_t phase_;
    int tile_consumer_ = 0;
};

// Each consumer multiplies every other tile and skips the stages of the tiles in between.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_ping_pong(const Params& p, Smem<C, MB>& smem, int consumer)
{
    const Stages<C, MB> stages(smem);
    const auto coord = ClusterCoord::here<C>();
    MmaOrder<C, MB> order(smem, consumer);
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : p.k_tiles;
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    for_each_work(Scheduler<C, MB>(p, coord, k_tiles, stages.base), [&](const Work& work,
                                                                        const Scheduler<C, MB>& scheduler) {
        if (order.is_mine()) {
            Accumulator<C> acc;
            if (threadIdx.x % 128 == 0)
                scheduler.fetch_next();
            prepare_output<C>(p, scalars, smem, work, k_tiles, consumer, 0);
            order.wait();
            multiply_tile<C, T, MA, MB>(
                acc, coord, stages, ring, work.k_tiles(), 0, [](int32_t) {}, [&] { order.pass(); });
            finish<C, T>(p, scalars, coord, smem, work, k_tiles, acc, consumer, 0);
        } else {
            ring.advance(work.k_tiles());
        }
        order.advance();
    });
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run_persistent(const Params& p, Smem<C, MB>& smem)
{
    const int warp = uniform(threadIdx.x / 32);
    if (warp < 4) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (warp == 0)
            produce<C, MA, MB>(p, smem);
    } else {
        if (threadIdx.x == 128) {
            prefetch_maps(p);
            init_barriers<C>(smem);
        }
        sync_roles<C>(p);
        ptx::setmaxnreg_inc<consumer_registers>();
        const int consumer = warp / 4 - 1;
        if constexpr (C.schedule == Schedule::PingPong)
            consume_ping_pong<C, T, MA, MB>(p, smem, consumer);
        else if constexpr (C.tree)
            consume_leaves<C, T, MA, MB>(p, smem, consumer);
        else
            consume_cooperative<C, T, MA, MB>(p, smem, consumer);
        ptx::launch_dependents();
        ptx::bulk_wait_group<0>();
    }
}

}  // namespace hg::sm90
