// The fused epilogue: adds C and a bias to the accumulators and applies an activation, before TMA stores
// them as it stores a plain tile.
//
//   c_full[consumer][buffer]     the consumer's leader -> its 128 threads. Count 1: the leader's arrive,
//                                which expects the bytes of a box of C; completes when they have landed.
//   named barrier 1 + consumer   the 128 threads of a consumer: all have read a box, so that the next may
//                                overwrite it; the bias of the tile is staged.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/staging.cuh"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

// Stages the bias of a tile before its main loop. The consumer's threads have finished with the bias of the
// tile before. That of a gated tile lies as its sums do: gates, then up elements, or in pairs (gated.cuh).
template <Config C, Major MB>
__device__ inline void stage_bias(const Params& p, float* staged, const TileCoord& at, int first_block)
{
    if constexpr (C.is_gated()) {
        constexpr int half = C.tile_n / 2;
        const GateBias bias(p, at.batch);
#pragma unroll 1
        for (int i = threadIdx.x % 128; i < C.tile_n; i += 128)
            staged[i] = are_pairs<MB>(p.gate) ? bias.load((at.n + i) / 2, i % 2)
                                              : bias.load(at.n / 2 + i % half, i / half);
        return;
    }
    const auto bias = TileBias::of<C>(p.output, p.swap_ab, at);
    const int first = bias.along_n ? 0 : first_block * 64;
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < (bias.along_n ? C.tile_n : C.blocks() * 64); i += 128)
        staged[i] = bias.load(first + i);
}

// TMA loads C as it stores D: in boxes of 64 rows by Width columns. As many boxes as there are staging
// buffers are there or on their way at a time, the first ones while the consumer multiplies the tile; the
// leader prefetches the others into L2 meanwhile.
template <Config C, int Width>
struct CLoader {
    static constexpr int boxes_along_n = box_count(C.tile_n, Width), count = C.blocks() * boxes_along_n;
    static constexpr int buffers = staging_buffers(C);
    static_assert(count % buffers == 0);

    __device__ static int m(int i) { return i / boxes_along_n * 64; }
    __device__ static int n(int i) { return box_start(C.tile_n, i % boxes_along_n, Width); }

    __device__ static uint32_t buffer(const Block& at, int i)
    {
        return ptx::shared_address(at.staging + i % buffers * staging_buffer_bytes);
    }

    __device__ static void load(const Params& p, const Block& at, int i)
    {
        const uint32_t full = at.c_full + i % buffers * 8,
                       bytes = Width * (p.output.type_c == Type::F32 ? 4 : 2);
        ptx::tma_load_3d(buffer(at, i), &p.c, full, static_cast<int32_t>(at.n) + n(i),
                         static_cast<int32_t>(at.m) + m(i), at.batch);
        ptx::mbarrier_arrive_expect_tx(full, 64 * bytes);
    }

    // The leader, once TMA has stored the boxes of the tile before.
    __device__ static void begin(const Params& p, const Block& at)
    {
#pragma unroll 1
        for (int i = 0; i < count; ++i)
            if (i < buffers)
                load(p, at, i);
            else
                ptx::tma_prefetch_3d(&p.c, static_cast<int32_t>(at.n) + n(i),
                                     static_cast<int32_t>(at.m) + m(i), at.batch);
    }

    // Calls add(sums, box, overlap) for each box; its first `overlap` columns were in the box before it.
    // After an odd number of phases each barrier gets one more, so that every tile begins with parity 0.
    template <typename Add>
    __device__ static void add_all(const Params& p, const Block& at, Accumulator<C>& acc, Add add)
    {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            ptx::mbarrier_wait_parity(at.c_full + i % buffers * 8, i / buffers & 1);
            add(acc[i / boxes_along_n] + n(i) / 2, buffer(at, i), i % boxes_along_n * Width - n(i));
            if (i + buffers < count) {
                // bar.sync alone does not wait for reads that are still in the queue, and TMA overtakes
                // them.
                ptx::fence_proxy_async();
                ptx::bar_sync(1 + at.consumer, 128);
                if (at.leads())
                    load(p, at, i + buffers);
            }
        }
        if constexpr (count / buffers % 2 != 0) {
            ptx::bar_sync(1 + at.consumer, 128);
            if (at.leads())
#pragma unroll
                for (int box = 0; box < buffers; ++box)
                    ptx::mbarrier_arrive(at.c_full + box * 8);
        }
    }
};

__device__ inline bool adds_c_fused(const Params& p, const Scalars& s)
{
    return p.epilogue == Epilogue::Fused && p.output.c && s.beta != 0.0f;
}

// Before the main loop of a tile whose epilogue reads C.
template <Config C>
__device__ inline void begin_loading_c(const Params& p, const Block& at)
{
    if (!at.leads())
        return;
    ptx::bulk_wait_group_read<0>();
    if (p.output.type_c == Type::F32)
        CLoader<C, 32>::begin(p, at);
    else
        CLoader<C, box_columns(C)>::begin(p, at);
}

template <Config C, Type T>
__device__ inline void add_c_fused(const Params& p, const Scalars& s, Accumulator<C>& acc, const Block& at)
{
    constexpr int columns = box_columns(C);
    if (p.output.type_c == Type::F32)
        CLoader<C, 32>::add_all(p, at, acc, [&](float* sums, uint32_t box, int overlap) {
            add_box_32(sums, box, overlap, s, at);
        });
    else
        CLoader<C, columns>::add_all(p, at, acc, [&](float* sums, uint32_t box, int overlap) {
            add_box_16<T, columns>(sums, box, overlap, s, at);
        });
}

// alpha times the sums, plus beta times C, plus the bias that stage_bias() has staged.
template <Config C, Type T>
__device__ inline void add_fused(const Params& p, const Scalars& s, Accumulator<C>& acc, const Block& at)
{
    auto& sums = reinterpret_cast<float(&)[accumulators_per_thread(C)]>(acc);
    const bool with_c = fuses_c(C) && adds_c_fused(p, s);
    if (!with_c)
        transform(sums, [&](float sum) { return __fmul_rn(s.alpha, sum); });
    if constexpr (fuses_c(C)) {
        if (with_c)
            add_c_fused<C, T>(p, s, acc, at);
    }
    if (p.output.bias_along != BiasAlong::None) {
        const bool along_n = is_bias_along_n(p.output, p.swap_ab);
        ptx::bar_sync(1 + at.consumer, 128);
#pragma unroll
        for (int block = 0; block < C.blocks(); ++block)
            add_bias<C.tile_n>(acc[block], at.bias + (along_n ? 0 : block * 64 + at.warp * 16), along_n);
    }
}

template <Config C>
__device__ inline void activate(Activation activation, Accumulator<C>& acc)
{
    auto& sums = reinterpret_cast<float(&)[accumulators_per_thread(C)]>(acc);
    if (activation == Activation::Relu)
        transform(sums, [](float x) { return relu(x); });
    if constexpr (fuses_all(C)) {
        if (activation == Activation::GeluTanh)
            transform(sums, [](float x) { return gelu_tanh(x); });
        else if (activation == Activation::Silu)
            transform(sums, [](float x) { return silu(x); });
    }
}

}  // namespace hg::sm90
