// GEMM with TMA, mbarriers and tcgen05: persistent clusters of one CTA, or of a pair of CTAs that multiply
// together. The CTAs that multiply together are the group; its leader is the CTA of rank 0.
//
// Barriers; in a pair those marked * are used in the leader alone:
//   full[s]*           producers -> consumers. Count 1: the leader's arrive, which expects the bytes of all
//                      CTAs of the group; completes when they have landed.
//   empty[s]           consumers -> producer. Count: the consumers, whose commits go to all CTAs of the
//                      group.
//   acc_full[b][a]     consumer b -> epilogue. Count 1: the consumer's commit, to all CTAs of the group.
//   acc_empty[b][a]*   epilogue -> consumer b. Count: the epilogue's warps in all CTAs of the group.
//   tile_full[r]       scheduler -> all roles. Count 1: the scheduler's arrive, which expects the bytes of
//                      the response.
//   tile_empty[r]*     all roles -> scheduler. Count: the readers of the response in all CTAs of the group.
//   cluster barrier    at the start: barriers are initialised. At the end: no CTA of a pair exits, and no
//                      tensor memory is freed, while the other CTA still uses it. A CTA on its own uses
//                      barrier 0.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/cluster_launch.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/tcgen05.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/types.hpp"
#include "arch/sm100/config.hpp"
#include "arch/sm100/split.cuh"
#include "arch/sm100/store.cuh"

namespace hg::sm100 {

constexpr int mma_k = 16;

// Arrives at a barrier of the own CTA or, in a pair, of the leader.
template <Config C>
__device__ inline void arrive_at_leader(uint32_t bar)
{
    if constexpr (C.cta_group == 2)
        ptx::mbarrier_arrive_cluster(ptx::map_shared(bar, 0));
    else
        ptx::mbarrier_arrive(bar);
}

// Gives a role the tiles of its cluster.
template <Config C>
class Scheduler {
public:
    __device__ Scheduler(const Params& p, const Stages<C>& stages)
        : tiles_(p.tiles), stages_(stages), index_(blockIdx.x / (C.is_split() ? p.split : C.cta_group))
    {
    }

    // The index of the current tile; negative at the end.
    __device__ int32_t index() const { return index_; }

    // Called by one thread.
    __device__ void advance()
    {
        if constexpr (C.schedule == Schedule::Static) {
            index_ += gridDim.x / C.cta_group;
            index_ = index_ < tiles_ ? index_ : -1;
        } else if constexpr (C.is_split()) {
            index_ = -1;
        } else {
            ptx::mbarrier_wait_parity(stages_.tile_full(ring_.stage), ring_.phase);
            const int32_t first = ptx::cancelled_cluster(stages_.response(ring_.stage));
            index_ = first < 0 ? -1 : first / C.cta_group;
            ptx::fence_proxy_async();
            arrive_at_leader<C>(stages_.tile_empty(ring_.stage));
            ring_.advance();
        }
    }

    // Called by a warp: lane 0 advances.
    __device__ void advance_warp(int lane)
    {
        if (lane == 0)
            advance();
        index_ = __shfl_sync(0xffffffff, index_, 0);
    }

private:
    int32_t tiles_;
    const Stages<C>& stages_;
    int32_t index_;
    Ring<responses> ring_ = Ring<responses>::reader();
};

// Arrives at tile_empty: the callers of Scheduler::advance() in a group's CTAs, which are the epilogue's
// warps, the producer and the scheduler of each, and the consumers.
template <Config C>
constexpr int tile_readers = C.cta_group*(epilogue_warps + 2) + C.consumers();

// The scheduler warp: requests the next tile as soon as a response slot is free.
template <Config C>
__device__ inline void request_tiles(const Params& p, const Stages<C>& stages, uint32_t rank)
{
    ptx::wait_for_earlier_grids();
    auto ring = Ring<responses>::writer();
    for (Scheduler<C> scheduler(p, stages); scheduler.index() >= 0; scheduler.advance(), ring.advance()) {
        const uint32_t response = stages.response(ring.stage);
        const uint32_t full = stages.tile_full(ring.stage);
        if (rank == 0)
            ptx::mbarrier_wait_parity(stages.tile_empty(ring.stage), ring.phase);
        ptx::mbarrier_arrive_expect_tx(full, response_bytes);
        if constexpr (C.cta_group == 2) {
            if (rank == 0)
                ptx::cancel_cluster_multicast(response, full);
        } else {
            ptx::cancel_cluster(response, full);
        }
    }
}

// Loads this CTA's rows of an operand into a stage. K-major: one box of all rows; MN-major: one box per
// panel.
template <Config C, int Rows>
__device__ inline void load_operand(const CUtensorMap& map, Major major, uint32_t smem, uint32_t bar,
                                    int32_t row, int32_t k, int32_t batch)
{
    const auto load = [&](uint32_t to, int32_t inner, int32_t outer) {
        if constexpr (C.cta_group == 2)
            ptx::tma_load_3d_pair(to, &map, bar, inner, outer, batch);
        else
            ptx::tma_load_3d(to, &map, bar, inner, outer, batch);
    };
    if (major == Major::K) {
        load(smem, k, row);
    } else {
#pragma unroll
        for (int panel = 0; panel < panels(Rows); ++panel)
            load(smem + panel * panel_bytes, row + panel * span_elements, k);
    }
}

// Loads the rows of A into a stage: for each consumer this CTA's 128 rows of the consumer's block.
template <Config C>
__device__ inline void load_a(const Params& p, uint32_t smem, uint32_t bar, const TileCoord& at,
                              uint32_t rank, int32_t k)
{
#pragma unroll
    for (int block = 0; block < C.consumers(); ++block)
        load_operand<C, 128>(p.a, p.a_major, smem + block * operand_bytes(128), bar,
                             at.m * C.tile_m + block * C.block() + rank * 128, k,
                             at.batch * p.a_batch_step);
}

// Bytes that TMA loads into a stage of one CTA.
template <Config C>
__device__ inline uint32_t stage_bytes(const Params& p)
{
    return operand_bytes(a_rows(C)) +
           (p.b_major == Major::K ? b_rows(C) * span_bytes : operand_bytes(b_rows(C)));
}

// Producer: one thread in each CTA fills the stages.
template <Config C>
__device__ inline void produce(const Params& p, const Stages<C>& stages, uint32_t rank)
{
    ptx::wait_for_earlier_grids();
    const Slice slice = slice_of_k<C>(p, load_scalars(p.output));
    auto ring = Ring<C.stages>::writer();
    for (Scheduler<C> scheduler(p, stages); scheduler.index() >= 0; scheduler.advance()) {
        const TileCoord at = tile_coord(p, scheduler.index());
        const int32_t row_b = at.n * C.tile_n + rank * b_rows(C), batch_b = at.batch * p.b_batch_step;
        for (int32_t i = slice.first; i < slice.last; ++i, ring.advance()) {
            uint32_t full = stages.full(ring.stage);
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
            if (rank == 0)
                ptx::mbarrier_arrive_expect_tx(full, C.cta_group * stage_bytes<C>(p));
            if constexpr (C.cta_group == 2)
                full = ptx::map_shared(full, 0);
            load_a<C>(p, stages.a(ring.stage), full, at, rank, i * tile_k);
            load_operand<C, b_rows(C)>(p.b, p.b_major, stages.b(ring.stage), full, row_b, i * tile_k,
                                       batch_b);
        }
    }
    // The leader's last commits must find this CTA alive: wait until all stages are empty.
    if constexpr (C.cta_group == 2)
#pragma unroll 1
        for (int i = 0; i < C.stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
    ptx::launch_dependents();
}

// PTX ISA 9.7.16.4.1, with 128-byte swizzle: `stride` leads to the next 8 rows of 128 bytes; `leading`, for
// MN-major operands, to the next panel. The address is an offset within the CTA's shared memory.
__device__ inline uint64_t operand_descriptor(uint32_t smem, Major major)
{
    constexpr uint64_t version = 1, swizzle_128 = 2, stride = 8 * span_bytes;
    const uint64_t leading = major == Major::K ? 16 : panel_bytes;
    return (uint64_t{smem} & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | version << 46 |
           swizzle_128 << 61;
}

// Added to a descriptor for the next K step; the descriptor's address field counts 16 bytes.
__device__ inline uint32_t k_step(Major major)
{
    return (major == Major::K ? 2 * mma_k : mma_k * span_bytes) / 16;
}

// Tensor memory address of accumulator `acc` of a consumer.
template <Config C>
__device__ inline uint32_t accumulator(uint32_t tmem, int consumer, uint32_t acc)
{
    return tmem + (consumer * C.accumulators() + acc) * C.tile_n;
}

// Arrives in all CTAs of the group when every MMA that this thread has issued is complete.
template <Config C>
__device__ inline void commit(uint32_t bar)
{
    if constexpr (C.cta_group == 2)
        ptx::tcgen05_commit_multicast(bar, 3);
    else
        ptx::tcgen05_commit(bar);
}

// Consumer: one thread of the leader multiplies its block of each tile.
template <Config C>
__device__ inline void consume(const Params& p, const Stages<C>& stages, uint32_t tmem, int consumer)
{
    ptx::wait_for_earlier_grids();
    const Slice slice = slice_of_k<C>(p, load_scalars(p.output));
    const uint64_t first_a = operand_descriptor(stages.a(0) + consumer * operand_bytes(128), p.a_major);
    const uint64_t first_b = operand_descriptor(stages.b(0), p.b_major);
    const uint32_t step_a = k_step(p.a_major), step_b = k_step(p.b_major);
    auto ring = Ring<C.stages>::reader();
    auto acc = Ring<C.accumulators()>::writer();
    for (Scheduler<C> scheduler(p, stages); scheduler.index() >= 0; scheduler.advance(), acc.advance()) {
        const uint32_t d = accumulator<C>(tmem, consumer, acc.stage);
        if constexpr (!C.is_split()) {
            ptx::mbarrier_wait_parity(stages.acc_empty(consumer, acc.stage), acc.phase);
            ptx::tmem_fence_after();
        }
        for (int32_t i = slice.first; i < slice.last; ++i, ring.advance()) {
            const uint32_t to_stage = ring.stage * (sizeof(typename Smem<C>::Stage) / 16);
            ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
#pragma unroll
            for (uint32_t step = 0; step < tile_k / mma_k; ++step)
                ptx::tcgen05_mma<C.cta_group>(d, first_a + to_stage + step * step_a,
                                              first_b + to_stage + step * step_b, p.instruction,
                                              i > slice.first || step > 0);
            commit<C>(stages.empty(ring.stage));
        }
        commit<C>(stages.acc_full(consumer, acc.stage));
    }
}

// Epilogue: each warp stores its 32 lanes of all accumulators of its CTA.
template <Config C>
__device__ inline void store_tiles(const Params& p, Smem<C>& smem, const Stages<C>& stages, uint32_t tmem,
                                   uint32_t rank, int warp)
{
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const bool multiplied = count_k_tiles(p, scalars) > 0;
    const int lane = threadIdx.x % 32;
    auto acc = Ring<C.accumulators()>::reader();
    uint32_t box = 0;
    for (Scheduler<C> scheduler(p, stages); scheduler.index() >= 0;
         scheduler.advance_warp(lane), acc.advance()) {
        const TileCoord at = tile_coord(p, scheduler.index());
#pragma unroll 1
        for (int block = 0; block < C.consumers(); ++block) {
            ptx::mbarrier_wait_parity(stages.acc_full(block, acc.stage), acc.phase);
            ptx::tmem_fence_after();
            const uint32_t from = accumulator<C>(tmem, block, acc.stage) + (warp * 32 << 16);
            const int64_t m = int64_t{at.m} * C.tile_m + block * C.block() + rank * 128 + warp * 32;
            const Strip strip{lane, m,          int64_t{at.n} * C.tile_n, at.batch,
                              from, multiplied, smem.staging[warp]};
            store_strip<C>(p, scalars, strip, box);
            ptx::tmem_fence_before();
            __syncwarp();
            if (lane == 0)
                arrive_at_leader<C>(stages.acc_empty(block, acc.stage));
        }
    }
    if (lane == 0)
        ptx::bulk_wait_group<0>();
}

template <Config C>
__device__ inline void init_barriers(const Stages<C>& stages)
{
    for (int i = 0; i < C.stages; ++i) {
        ptx::mbarrier_init(stages.full(i), 1);
        ptx::mbarrier_init(stages.empty(i), C.consumers());
    }
    for (int consumer = 0; consumer < C.consumers(); ++consumer)
        for (int i = 0; i < C.accumulators(); ++i) {
            ptx::mbarrier_init(stages.acc_full(consumer, i), 1);
            if constexpr (!C.is_split())
                ptx::mbarrier_init(stages.acc_empty(consumer, i), C.cta_group * epilogue_warps);
        }
    if constexpr (C.is_split())
        ptx::mbarrier_init(stages.partials_full(), 1);
    if constexpr (C.schedule == Schedule::Dynamic)
        for (int i = 0; i < responses; ++i) {
            ptx::mbarrier_init(stages.tile_full(i), 1);
            ptx::mbarrier_init(stages.tile_empty(i), tile_readers<C>);
        }
    ptx::fence_mbarrier_init();
}

// All threads of the cluster; what they have written before is visible after.
__device__ inline void sync_cluster()
{
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

// All threads of the group.
template <Config C>
__device__ inline void sync_group()
{
    if constexpr (C.cta_group == 2)
        sync_cluster();
    else
        __syncthreads();
}

// All threads, first of all. This touches nothing that earlier kernels on the stream read or write, so that
// it overlaps with their end; each role calls wait_for_earlier_grids() before its first access.
template <Config C>
__device__ inline uint32_t prepare(const Params& p, Smem<C>& smem, const Stages<C>& stages, int warp)
{
    if (threadIdx.x == 0) {
        init_barriers(stages);
        ptx::prefetch_tensormap(&p.a);
        ptx::prefetch_tensormap(&p.b);
        if (p.tma_store)
            ptx::prefetch_tensormap(&p.d);
    }
    if (warp == scheduler_warp) {
        ptx::tmem_allocate<C.cta_group>(ptx::shared_address(&smem.tmem), C.tmem_columns());
        ptx::tmem_stop_allocating<C.cta_group>();
    }
    __syncwarp();
    if (C.is_split() && p.split > 1)
        sync_cluster();
    else
        sync_group<C>();
    return *static_cast<volatile uint32_t*>(&smem.tmem);
}

template <Config C>
__device__ inline void run(const Params& p, Smem<C>& smem)
{
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const uint32_t rank = C.cta_group == 2 ? ptx::cluster_ctarank() : 0;
    const Stages<C> stages(smem);
    const uint32_t tmem = prepare(p, smem, stages, warp);
    if (warp < epilogue_warps) {
        if constexpr (C.is_split())
            store_slice(p, smem, stages, tmem, warp);
        else
            store_tiles(p, smem, stages, tmem, rank, warp);
    } else if (warp == producer_warp && ptx::elect_one()) {
        produce(p, stages, rank);
    } else if (warp == scheduler_warp && C.schedule == Schedule::Dynamic && ptx::elect_one()) {
        request_tiles(p, stages, rank);
    } else if (warp >= first_consumer_warp && rank == 0 && ptx::elect_one()) {
        consume(p, stages, tmem, warp - first_consumer_warp);
    }
    __syncwarp();
    sync_group<C>();
    if (warp == scheduler_warp)
        ptx::tmem_free<C.cta_group>(tmem, C.tmem_columns());
}

}  // namespace hg::sm100
