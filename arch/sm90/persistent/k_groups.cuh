// Grouped GEMM whose groups divide K: each problem of a batch sums over some K of one A and one B, whose
// sizes lie in device memory. A and B are contiguous along M and N. Persistent CTAs with one producer and
// two consumers in ping-pong order, as in kernel.cuh; a cluster computes every so many tiles.
//
// The last K tile of a group may hold K of the next group, or what lies behind the last one. The consumer
// that multiplies it sets these rows of its stage to 0, in A and in B: an infinity in one of them would
// make a NaN of the other's zero.
//
// Barriers: those of mainloop.cuh, kernel.cuh and epilogue_fused.cuh. Named barrier 1 + consumer, the 128
// threads of a consumer: all have cleared their rows of the last K tile.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/groups.cuh"
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
#include "arch/sm90/persistent/kernel.cuh"
#include "arch/sm90/persistent/staging.cuh"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

// A tile, and the K of its group: first ... first + count - 1.
struct KGroupTile {
    TileCoord at;
    int32_t first, count;

    __device__ int32_t k_tiles() const { return (count + tile_k - 1) / tile_k; }
};

// Calls body(tile) for the tiles of this CTA's cluster. Called by whole warps.
template <Config C, typename Body>
__device__ inline void for_each_k_group_tile(const Params& p, const ClusterCoord& coord, Body body)
{
    const auto clusters = static_cast<int32_t>(gridDim.x / C.ctas());
    for (auto index = static_cast<int32_t>(blockIdx.x / C.ctas()); index < p.tiles; index += clusters) {
        const TileCoord at = tile_coord<C>(p, coord, index);
        const auto [first, count] = GroupRows::of(p.groups, at.batch, p.group_k);
        body(KGroupTile{at, uniform(first), uniform(count)});
    }
}

template <Config C, Major MA, Major MB>
__device__ inline void produce_k_groups(const Params& p, Smem<C, MB>& smem)
{
    const Stages<C, MB> stages(smem);
    const bool leader = ptx::elect_one();
    const auto coord = ClusterCoord::here<C>();
    sync_roles<C>(p);
    ptx::wait_for_earlier_grids();
    auto ring = Ring<Smem<C, MB>::stages>::writer();
    for_each_k_group_tile<C>(p, coord, [&](const KGroupTile& tile) {
        for (int32_t i = 0; i < tile.k_tiles(); ++i, ring.advance()) {
            const uint32_t full = stages.full(ring.stage);
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
            if (leader) {
                load_stage<C, MA, MB>(p, coord, stages.a(ring.stage), full, tile.at,
                                      tile.first + i * tile_k);
                ptx::mbarrier_arrive_expect_tx(full, sizeof(typename Smem<C, MB>::Stage));
            }
            __syncwarp();
        }
    });
    // Wait until all stages are empty, as produce() does.
    if constexpr (C.ctas() > 1)
#pragma unroll 1
        for (int i = 0; i < Smem<C, MB>::stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
}

// Sets rows k_left ... 63 of an operand's part of a stage to 0. A row is 128 bytes of each panel, however
// the swizzle permutes them.
template <int Panels>
__device__ inline void clear_rows(unsigned char* operand, int k_left, int thread)
{
    constexpr int vectors = span_bytes / 16;
#pragma unroll 1
    for (int i = k_left * vectors + thread; i < tile_k * vectors; i += 128)
#pragma unroll
        for (int panel = 0; panel < Panels; ++panel)
            reinterpret_cast<uint4*>(operand + panel * tile_k * span_bytes)[i] = make_uint4(0, 0, 0, 0);
}

// Waits for a stage, and clears what is not of the group. Called by all threads of a consumer.
template <Config C, Major MB>
__device__ inline void clear_tail(Smem<C, MB>& smem, const Stages<C, MB>& stages,
                                  const Ring<Smem<C, MB>::stages>& ring, int k_left, int consumer)
{
    ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
    auto& stage = smem.stage[ring.stage];
    const int thread = threadIdx.x % 128;
    clear_rows<C.tile_m / span_elements>(stage.a, k_left, thread);
    clear_rows<round_up(C.tile_n, span_elements) / span_elements>(stage.b, k_left, thread);
    ptx::fence_proxy_async();
    ptx::bar_sync(1 + consumer, 128);
}

// Those of groups are parameters: read where they are needed they take no registers in the main loop.
__device__ inline Scalars scalars_of(const Params& p) { return {p.output.alpha, p.output.beta}; }

// Each consumer multiplies every other tile and skips the stages of the tiles in between.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume_k_groups(const Params& p, Smem<C, MB>& smem, int consumer)
{
    static_assert(MA == Major::MN && MB == Major::MN);
    const Stages<C, MB> stages(smem);
    const auto coord = ClusterCoord::here<C>();
    MmaOrder<C, MB> order(smem, consumer);
    ptx::wait_for_earlier_grids();
    auto ring = Ring<Smem<C, MB>::stages>::reader();
    for_each_k_group_tile<C>(p, coord, [&](const KGroupTile& tile) {
        const int32_t k_tiles = tile.k_tiles();
        if (order.is_mine()) {
            Accumulator<C> acc;
            const Block at = Block::of<C>(smem, tile.at, consumer, 0);
            if constexpr (fuses_c(C)) {
                if (adds_c_fused(p, scalars_of(p)))
                    begin_loading_c<C>(p, at);
            }
            order.wait();
            const auto begin = [&](int32_t i) {
                const int k_left = tile.count - i * tile_k;
                if (k_left < tile_k)
                    clear_tail<C>(smem, stages, ring, k_left, consumer);
            };
            multiply_tile<C, T, MA, MB>(acc, coord, stages, ring, k_tiles, 0, begin, [&] { order.pass(); });
            store_tile<C, T>(p, scalars_of_k_group(scalars_of(p), tile.count), acc, at);
        } else {
            ring.advance(k_tiles);
        }
        order.advance();
    });
}

}  // namespace hg::sm90
