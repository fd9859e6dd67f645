// GEMM with TMA, mbarriers, ldmatrix and mma.sync. Persistent CTAs: CTA i computes tiles i, i + CTAs, ...
// Barriers: see mainloop.cuh.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/common/warp_tile.cuh"
#include "arch/sm120/store.cuh"

namespace hg::sm120 {

// All threads, first of all. This touches nothing that earlier kernels on the stream read or write, so that
// it overlaps with their end.
template <Config C>
__device__ inline void prepare(const Params& p, Smem<C>& smem)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < C.stages; ++i) {
            ptx::mbarrier_init(ptx::shared_address(&smem.full[i]), 1);
            ptx::mbarrier_init(ptx::shared_address(&smem.empty[i]), C.consumers());
        }
        ptx::fence_mbarrier_init();
        ptx::prefetch_tensormap(&p.a);
        ptx::prefetch_tensormap(&p.b);
        if (p.tma_store)
            ptx::prefetch_tensormap(&p.d);
    }
    __syncthreads();
}

// Consumer: every warp multiplies and stores its part of each tile.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume(const Params& p, Smem<C>& smem, const Stages<C>& stages)
{
    const int32_t k_tiles = count_k_tiles(p, load_scalars(p.output), C.tile_k);
    auto ring = Ring<C.stages>::reader();
    for (int32_t index = blockIdx.x; index < p.tiles; index += gridDim.x) {
        WarpAccumulator<C.warp_m(), C.warp_n()> acc;
        multiply_tile<C, T, MA, MB>(acc, stages, ring, k_tiles, threadIdx.x / 32, threadIdx.x % 32);
        ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
        // Found here, and read again: kept during the main loop, they would spill.
        const Tile tile = tile_at(p.grid, static_cast<int32_t>(ptx::mov_b32(static_cast<uint32_t>(index))));
        const uint32_t thread = ptx::read_thread();
        const int warp = static_cast<int>(thread / 32), lane = static_cast<int>(thread % 32);
        const WarpPart part{tile.m * C.tile_m + warp / C.warps_n * C.warp_m(),
                            tile.n * C.tile_n + warp % C.warps_n * C.warp_n(), tile.batch,
                            smem.stage[ring.stage].a + warp * C.staging_bytes(), lane};
        store_part<C, T>(p, load_scalars(p.output), acc, part);
        __syncwarp();
        if (lane == 0)
            ptx::mbarrier_arrive(stages.empty(ring.stage));
        ring.advance();
    }
    ptx::launch_dependents();
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run(const Params& p, Smem<C>& smem)
{
    prepare(p, smem);
    ptx::wait_for_earlier_grids();
    const Stages<C> stages(smem);
    if (threadIdx.x < 32 * C.consumers()) {
        if constexpr (C.registers > 0)
            ptx::setmaxnreg_inc<C.registers>();
        consume<C, T, MA, MB>(p, smem, stages);
        return;
    }
    if constexpr (C.registers > 0)
        ptx::setmaxnreg_dec<producer_registers>();
    if (threadIdx.x / 32 == C.consumers() && ptx::elect_one()) {
        Producer<C, MA, MB> producer(p, stages, count_k_tiles(p, load_scalars(p.output), C.tile_k));
        while (producer.has_next())
            producer.fill_stage();
    }
}

}  // namespace hg::sm120
