// The main loop: a producer thread fills the stages, consumer warps multiply them.
//
// Barriers, one of each per stage:
//   full[s]    producer -> consumers. Count 1: the producer's arrive, which expects the bytes of A and B;
//              completes when they have landed.
//   empty[s]   consumers -> producer. Count C.consumers(): one lane of each warp, once the warp has issued
//              every mma.sync that uses its fragments of the stage.
//
// After a tile's last K tile the producer gives the consumers one stage without filling it: in it they
// stage the output, each warp in its own part, and then release it like any other.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/common/warp_tile.cuh"
#include "arch/sm120/config.hpp"

namespace hg::sm120 {

// Shared addresses of the stages and of their barriers.
template <Config C>
struct Stages {
    using Layout = Smem<C>;
    uint32_t base;

    __device__ explicit Stages(const Layout& smem) : base(ptx::shared_address_once(&smem)) {}
    __device__ uint32_t a(uint32_t stage) const { return base + stage * sizeof(typename Layout::Stage); }
    __device__ uint32_t b(uint32_t stage) const { return a(stage) + sizeof(Layout::Stage::a); }
    __device__ uint32_t full(uint32_t stage) const { return base + offsetof(Layout, full) + 8 * stage; }
    __device__ uint32_t empty(uint32_t stage) const { return base + offsetof(Layout, empty) + 8 * stage; }
};

__device__ inline int32_t count_k_tiles(const Params& p, const Scalars& s, int tile_k)
{
    return s.alpha == 0.0f ? 0 : (p.k + tile_k - 1) / tile_k;
}

// Loads one operand's part of a stage, Rows x K. K-major: one box; MN-major: one box per panel.
template <Major M, int Rows, int K>
__device__ inline void load_operand(const CUtensorMap& map, uint32_t smem, uint32_t bar, int32_t row,
                                    int32_t k, int32_t batch)
{
    if constexpr (M == Major::K) {
        ptx::tma_load_3d_cta(smem, &map, bar, k, row, batch);
    } else {
#pragma unroll
        for (int i = 0; i < Rows / panel; ++i)
            ptx::tma_load_3d_cta(smem + i * 2 * panel * K, &map, bar, row + i * panel, k, batch);
    }
}

// Producer: one thread fills the stages one after another, for all tiles of this CTA.
template <Config C, Major MA, Major MB>
class Producer {
public:
    __device__ Producer(const Params& p, const Stages<C>& stages, int32_t k_tiles)
        : p_(p), stages_(stages), k_tiles_(k_tiles), index_(blockIdx.x)
    {
        tile_ = tile_at(p.grid, index_);
    }

    __device__ bool has_next() const { return index_ < p_.tiles; }

    // Fills the next stage with a K tile or, after the last one of a tile, leaves it to the output.
    __device__ void fill_stage()
    {
        const uint32_t full = stages_.full(ring_.stage);
        ptx::mbarrier_wait_parity(stages_.empty(ring_.stage), ring_.phase);
        if (k_tile_ < k_tiles_) {
            ptx::mbarrier_arrive_expect_tx(full, C.stage_bytes());
            load_operand<MA, C.tile_m, C.tile_k>(p_.a, stages_.a(ring_.stage), full, tile_.m * C.tile_m,
                                                 k_tile_ * C.tile_k, tile_.batch * p_.a_batch_step);
            load_operand<MB, C.tile_n, C.tile_k>(p_.b, stages_.b(ring_.stage), full, tile_.n * C.tile_n,
                                                 k_tile_ * C.tile_k, tile_.batch * p_.b_batch_step);
            ++k_tile_;
        } else {
            ptx::mbarrier_arrive(full);
            k_tile_ = 0;
            index_ += gridDim.x;
            tile_ = tile_at(p_.grid, index_);
        }
        ring_.advance();
    }

private:
    const Params& p_;
    const Stages<C>& stages_;
    Ring<C.stages> ring_ = Ring<C.stages>::writer();
    int32_t k_tiles_, index_, k_tile_ = 0;
    Tile tile_;
};

// Consumer: multiplies k_tiles stages. It loads fragments one K step ahead of mma.sync, across the stages.
template <Config C, Type T, Major MA, Major MB, typename Accumulator>
__device__ inline void multiply_tile(Accumulator& acc, const Stages<C>& stages, Ring<C.stages>& ring,
                                     int32_t k_tiles, int warp, int lane)
{
    using Share = WarpTile<T, MA, MB, C.tile_k, C.warp_m(), C.warp_n()>;
    constexpr int steps = C.tile_k / 16;
    static_assert(steps % 2 == 0);
    const int row_a = warp / C.warps_n * C.warp_m(), row_b = warp % C.warps_n * C.warp_n();
    typename Share::Fragments f[2];
    const typename Share::Lane offsets(row_a, row_b, lane);
    const auto lane_in = [&](uint32_t stage) {
        return typename Share::Lane(offsets, stages.a(stage), stages.b(stage));
    };
    acc.clear();
    if (k_tiles > 0) {
        ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
        Share::load(f[0], lane_in(ring.stage), 0);
    }
    for (int32_t i = 0; i < k_tiles; ++i) {
        const uint32_t stage = ring.stage;
        const auto at = lane_in(stage);
        ring.advance();
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) {
                Share::load(f[(step + 1) % 2], at, 16 * (step + 1));
            } else if (i + 1 < k_tiles) {
                ptx::mbarrier_wait_parity(stages.full(ring.stage), ring.phase);
                Share::load(f[0], lane_in(ring.stage), 0);
            }
            Share::multiply(acc, f[step % 2]);
        }
        // No proxy fence: in the machine code of all kernels each ldmatrix of the stage has returned by
        // now, because an mma.sync before this line waits for it.
        if (lane == 0)
            ptx::mbarrier_arrive(stages.empty(stage));
    }
}

}  // namespace hg::sm120
