// GEMM with TMA, mbarriers and tcgen05: persistent clusters of a CTA or of a pair that multiplies together.
//
// Barriers, of a pair those marked * are used in the even CTA, the leader:
//   full[s]*         producers -> consumers. Count 1: the leader's arrive, which also announces the
//                    bytes of all CTAs of the group; completes when they have landed.
//   empty[s]         consumers -> producer. Count: consumers, whose commits go to all CTAs of the group.
//   acc_full[b][a]   consumer b -> epilogue. Count 1: its commit, to all CTAs of the group.
//   acc_empty[b][a]* epilogue -> consumer b. Count: the epilogue's warps, of all CTAs of the group.
//   tile_full[r]     scheduler -> everyone. Count 1: the arrive that announces the response's bytes.
//   tile_empty[r]*   everyone -> scheduler. Count: who reads the response, in all CTAs of the group.
//   cluster          start: barriers are initialised. End: neither CTA of a pair leaves, and no tensor
//                    memory is freed, while the other needs it. For a CTA on its own: barrier 0.
#pragma once

#include "arch/sm100/split.cuh"

namespace hg::sm100 {

constexpr int mma_k = 16;

// Leaves a barrier one arrive: of the own CTA, or of the leader of the pair.
template <Config C>
__device__ inline void arrive_at_leader(uint32_t bar)
{
    if constexpr (C.cta_group == 2)
        ptx::mbarrier_arrive_cluster(ptx::map_shared(bar, 0));
    else
        ptx::mbarrier_arrive(bar);
}

// Scheduler, the side of the roles: the tiles of this cluster in turn.
template <Config C>
class Tiles {
public:
    __device__ Tiles(const Params& p, const Places<C>& places)
        : tiles_(p.tiles), places_(places), index_(blockIdx.x / (C.is_split() ? p.split : C.cta_group))
    {
    }

    // The tile to work on; negative: there is none.
    __device__ int32_t index() const { return index_; }

    // One thread.
    __device__ void advance()
    {
        if constexpr (C.schedule == Schedule::Static) {
            index_ += gridDim.x / C.cta_group;
            index_ = index_ < tiles_ ? index_ : -1;
        } else if constexpr (C.is_split()) {
            index_ = -1;
        } else {
            ptx::mbarrier_wait_parity(places_.tile_full(ring_.stage), ring_.phase);
            const int32_t first = ptx::cancelled_cluster(places_.response(ring_.stage));
            index_ = first < 0 ? -1 : first / C.cta_group;
            ptx::fence_proxy_async();
            arrive_at_leader<C>(places_.tile_empty(ring_.stage));
            ring_.advance();
        }
    }

    // A warp.
    __device__ void advance_warp(int lane)
    {
        if (lane == 0)
            advance();
        index_ = __shfl_sync(0xffffffff, index_, 0);
    }

private:
    int32_t tiles_;
    const Places<C>& places_;
    int32_t index_;
    Ring<responses> ring_ = Ring<responses>::reader();
};

// Those who call Tiles::advance() in a group's CTAs: the epilogue's warps, the producer and the scheduler
// of each, and the consumers.
template <Config C>
constexpr int tile_readers = C.cta_group*(epilogue_warps + 2) + C.consumers();

// Scheduler: asks for the next tile as soon as there is room for the answer.
template <Config C>
__device__ inline void schedule(const Params& p, const Places<C>& places, uint32_t rank)
{
    ptx::wait_for_earlier_grids();
    auto ring = Ring<responses>::writer();
    for (Tiles<C> tiles(p, places); tiles.index() >= 0; tiles.advance(), ring.advance()) {
        const uint32_t response = places.response(ring.stage);
        const uint32_t full = places.tile_full(ring.stage);
        if (rank == 0)
            ptx::mbarrier_wait_parity(places.tile_empty(ring.stage), ring.phase);
        ptx::mbarrier_arrive_expect_tx(full, response_bytes);
        if constexpr (C.cta_group == 2) {
            if (rank == 0)
                ptx::cancel_cluster_multicast(response, full);
        } else {
            ptx::cancel_cluster(response, full);
        }
    }
}

// This CTA's rows of an operand into a stage. K-major: one box of all rows; MN-major: one for each panel.
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

// The rows of x in a stage: of each consumer this CTA's half of the block.
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

// The bytes that come to a stage of one CTA.
template <Config C>
__device__ inline uint32_t stage_bytes(const Params& p)
{
    return operand_bytes(a_rows(C)) +
           (p.b_major == Major::K ? b_rows(C) * span_bytes : operand_bytes(b_rows(C)));
}

// Producer: one thread fills the stages, of a pair one in each CTA.
template <Config C>
__device__ inline void produce(const Params& p, const Places<C>& places, uint32_t rank)
{
    ptx::wait_for_earlier_grids();
    const Slice slice = slice_of_k<C>(p, load_scalars(p.output));
    auto ring = Ring<C.stages>::writer();
    for (Tiles<C> tiles(p, places); tiles.index() >= 0; tiles.advance()) {
        const TileCoord at = position_of(p, tiles.index());
        const int32_t row_b = at.n * C.tile_n + rank * b_rows(C), batch_b = at.batch * p.b_batch_step;
        for (int32_t i = slice.first; i < slice.last; ++i, ring.advance()) {
            uint32_t full = places.full(ring.stage);
            ptx::mbarrier_wait_parity(places.empty(ring.stage), ring.phase);
            if (rank == 0)
                ptx::mbarrier_arrive_expect_tx(full, C.cta_group * stage_bytes<C>(p));
            if constexpr (C.cta_group == 2)
                full = ptx::map_shared(full, 0);
            load_a<C>(p, places.a(ring.stage), full, at, rank, i * tile_k);
            load_operand<C, b_rows(C)>(p.b, p.b_major, places.b(ring.stage), full, row_b, i * tile_k,
                                       batch_b);
        }
    }
    // Until the leader's last commits have come, so that they do not meet a CTA that has left.
    if constexpr (C.cta_group == 2)
#pragma unroll 1
        for (int i = 0; i < C.stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(places.empty(ring.stage), ring.phase);
    ptx::launch_dependents();
}

// PTX ISA 9.7.16.4.1, with 128-byte swizzle: `stride` leads to the next 8 lines of 128 bytes; `leading`,
// for MN-major operands, to the next panel. The address is that within the CTA.
__device__ inline uint64_t operand_descriptor(uint32_t smem, Major major)
{
    constexpr uint64_t version = 1, swizzle_128 = 2, stride = 8 * span_bytes;
    const uint64_t leading = major == Major::K ? 16 : panel_bytes;
    return (uint64_t{smem} & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | version << 46 |
           swizzle_128 << 61;
}

// What a descriptor grows by from one k step to the next; its address field counts 16 bytes.
__device__ inline uint32_t k_step(Major major)
{
    return (major == Major::K ? 2 * mma_k : mma_k * span_bytes) / 16;
}

// Where accumulator `acc` of a consumer begins.
template <Config C>
__device__ inline uint32_t accumulator(uint32_t tmem, int consumer, uint32_t acc)
{
    return tmem + (consumer * C.accumulators() + acc) * C.tile_n;
}

// Arrives, in all CTAs of the group, when what this thread has multiplied is done.
template <Config C>
__device__ inline void commit(uint32_t bar)
{
    if constexpr (C.cta_group == 2)
        ptx::tcgen05_commit_multicast(bar, 3);
    else
        ptx::tcgen05_commit(bar);
}

// Consumer: one thread of the leader multiplies a block of each tile.
template <Config C>
__device__ inline void consume(const Params& p, const Places<C>& places, uint32_t tmem, int consumer)
{
    ptx::wait_for_earlier_grids();
    const Slice slice = slice_of_k<C>(p, load_scalars(p.output));
    const uint64_t first_a = operand_descriptor(places.a(0) + consumer * operand_bytes(128), p.a_major);
    const uint64_t first_b = operand_descriptor(places.b(0), p.b_major);
    const uint32_t step_a = k_step(p.a_major), step_b = k_step(p.b_major);
    auto ring = Ring<C.stages>::reader();
    auto acc = Ring<C.accumulators()>::writer();
    for (Tiles<C> tiles(p, places); tiles.index() >= 0; tiles.advance(), acc.advance()) {
        const uint32_t d = accumulator<C>(tmem, consumer, acc.stage);
        if constexpr (!C.is_split()) {
            ptx::mbarrier_wait_parity(places.acc_empty(consumer, acc.stage), acc.phase);
            ptx::tmem_fence_after();
        }
        for (int32_t i = slice.first; i < slice.last; ++i, ring.advance()) {
            const uint32_t to_stage = ring.stage * (sizeof(typename Smem<C>::Stage) / 16);
            ptx::mbarrier_wait_parity(places.full(ring.stage), ring.phase);
#pragma unroll
            for (uint32_t step = 0; step < tile_k / mma_k; ++step)
                ptx::tcgen05_mma<C.cta_group>(d, first_a + to_stage + step * step_a,
                                              first_b + to_stage + step * step_b, p.instruction,
                                              i > slice.first || step > 0);
            commit<C>(places.empty(ring.stage));
        }
        commit<C>(places.acc_full(consumer, acc.stage));
    }
}

// Epilogue: each warp stores its lanes of all accumulators, of a pair those of its CTA.
template <Config C>
__device__ inline void store_tiles(const Params& p, Smem<C>& smem, const Places<C>& places, uint32_t tmem,
                                   uint32_t rank, int warp)
{
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const bool multiplied = count_k_tiles(p, scalars) > 0;
    const int lane = threadIdx.x % 32;
    auto acc = Ring<C.accumulators()>::reader();
    uint32_t box = 0;
    for (Tiles<C> tiles(p, places); tiles.index() >= 0; tiles.advance_warp(lane), acc.advance()) {
        const TileCoord at = position_of(p, tiles.index());
#pragma unroll 1
        for (int block = 0; block < C.consumers(); ++block) {
            ptx::mbarrier_wait_parity(places.acc_full(block, acc.stage), acc.phase);
            ptx::tmem_fence_after();
            const uint32_t from = accumulator<C>(tmem, block, acc.stage) + (warp * 32 << 16);
            const int64_t m = int64_t{at.m} * C.tile_m + block * C.block() + rank * 128 + warp * 32;
            const Strip strip{lane, m,          int64_t{at.n} * C.tile_n, at.batch,
                              from, multiplied, smem.staging[warp]};
            store_strip<C>(p, scalars, strip, box);
            ptx::tmem_fence_before();
            __syncwarp();
            if (lane == 0)
                arrive_at_leader<C>(places.acc_empty(block, acc.stage));
        }
    }
    if (lane == 0)
        ptx::bulk_wait_group<0>();
}

template <Config C>
__device__ inline void init_barriers(const Places<C>& places)
{
    for (int i = 0; i < C.stages; ++i) {
        ptx::mbarrier_init(places.full(i), 1);
        ptx::mbarrier_init(places.empty(i), C.consumers());
    }
    for (int consumer = 0; consumer < C.consumers(); ++consumer)
        for (int i = 0; i < C.accumulators(); ++i) {
            ptx::mbarrier_init(places.acc_full(consumer, i), 1);
            if constexpr (!C.is_split())
                ptx::mbarrier_init(places.acc_empty(consumer, i), C.cta_group * epilogue_warps);
        }
    if constexpr (C.is_split())
        ptx::mbarrier_init(places.partials_full(), 1);
    if constexpr (C.schedule == Schedule::Dynamic)
        for (int i = 0; i < responses; ++i) {
            ptx::mbarrier_init(places.tile_full(i), 1);
            ptx::mbarrier_init(places.tile_empty(i), tile_readers<C>);
        }
    ptx::fence_mbarrier_init();
}

// All threads of the cluster: what was done before is known after.
__device__ inline void sync_cluster()
{
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

// Those of the group.
template <Config C>
__device__ inline void sync_group()
{
    if constexpr (C.cta_group == 2)
        sync_cluster();
    else
        __syncthreads();
}

// All threads, first of all. Nothing here touches what earlier kernels on the stream read or write, so it
// overlaps with their end; each role calls wait_for_earlier_grids() before it does.
template <Config C>
__device__ inline uint32_t prepare(const Params& p, Smem<C>& smem, const Places<C>& places, int warp)
{
    if (threadIdx.x == 0) {
        init_barriers(places);
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
    const Places<C> places(smem);
    const uint32_t tmem = prepare(p, smem, places, warp);
    if (warp < epilogue_warps) {
        if constexpr (C.is_split())
            store_slice(p, smem, places, tmem, warp);
        else
            store_tiles(p, smem, places, tmem, rank, warp);
    } else if (warp == producer_warp && ptx::elect_one()) {
        produce(p, places, rank);
    } else if (warp == scheduler_warp && C.schedule == Schedule::Dynamic && ptx::elect_one()) {
        schedule(p, places, rank);
    } else if (warp >= first_consumer_warp && rank == 0 && ptx::elect_one()) {
        consume(p, places, tmem, warp - first_consumer_warp);
    }
    __syncwarp();
    sync_group<C>();
    if (warp == scheduler_warp)
        ptx::tmem_free<C.cta_group>(tmem, C.tmem_columns());
}

}  // namespace hg::sm100
