// GEMM with TMA, mbarriers and wgmma: persistent CTAs of one producer and C.consumers consumer warpgroups.
//
// Barriers, one of each a stage:
//   full[s]   producer -> consumers. Count 1: the producer's arrive, which also announces the bytes of
//             both TMA loads; completes when they have landed.
//   empty[s]  consumers -> producer. Count 4 * C.consumers: one lane of each warp, once that warp's wait
//             says that the wgmma that read the stage has finished.
// Named barrier 1 + consumer: the 128 threads of a consumer, around its staging boxes.
// TMA stores are waited for by the thread that issued them: before it lets a box be written again, and
// before it exits.
#pragma once

#include "arch/common/epilogue.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ptx/wgmma.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/sm90/config.hpp"

namespace hg::sm90 {

constexpr int producer_registers = 40, consumer_registers = 232;
constexpr int wgmma_k = 16;

// Scheduler: CTA i takes tiles i, i + grid, i + 2 * grid, ...
template <typename Body>
__device__ inline void for_each_tile(const Params& p, Body body)
{
    for (int32_t index = blockIdx.x; index < p.tiles; index += gridDim.x)
        body(tile_at(p.grid, index));
}

__device__ inline int32_t count_k_tiles(const Params& p, const Scalars& s, int tile_k)
{
    return s.alpha == 0.0f ? 0 : (p.k + tile_k - 1) / tile_k;
}

// One operand's part of a stage. K-major: one box of Rows rows; MN-major: a box for each 64 rows.
template <Major M, int Rows, int K>
__device__ inline void load_operand(uint32_t smem, const CUtensorMap& map, uint32_t bar, int32_t row,
                                    int32_t k, int32_t batch)
{
    if constexpr (M == Major::K) {
        ptx::tma_load_3d(smem, &map, bar, k, row, batch);
    } else {
#pragma unroll
        for (int panel = 0; panel < Rows / span_elements; ++panel)
            ptx::tma_load_3d(smem + panel * K * span_bytes, &map, bar, row + panel * span_elements, k,
                             batch);
    }
}

// Producer: one thread fills the stages.
template <Config C, Major MA, Major MB>
__device__ inline void produce(const Params& p, Smem<C>& smem)
{
    const int32_t k_tiles = count_k_tiles(p, load_scalars(p.output), C.k);
    auto ring = Ring<C.stages>::writer();
    for_each_tile(p, [&](const Tile& tile) {
        for (int32_t i = 0; i < k_tiles; ++i, ring.advance()) {
            const uint32_t full = ptx::shared_address(&smem.full[ring.stage]);
            ptx::mbarrier_wait_parity(ptx::shared_address(&smem.empty[ring.stage]), ring.phase);
            ptx::mbarrier_arrive_expect_tx(full, sizeof smem.a[0] + sizeof smem.b[0]);
            load_operand<MA, C.m, C.k>(ptx::shared_address(smem.a[ring.stage]), p.a, full, tile.m * C.m,
                                       i * C.k, tile.batch * p.a_batch_step);
            load_operand<MB, C.n, C.k>(ptx::shared_address(smem.b[ring.stage]), p.b, full, tile.n * C.n,
                                       i * C.k, tile.batch * p.b_batch_step);
        }
    });
}

// Descriptor of the operand at `smem`, rows and k from there on.
template <Major M, int K>
__device__ inline uint64_t operand_descriptor(uint32_t smem)
{
    constexpr int atom = 8 * span_bytes;
    return M == Major::K ? ptx::wgmma_descriptor(smem, 0, atom)
                         : ptx::wgmma_descriptor(smem, K * span_bytes, atom);
}

// What a descriptor grows by from one k step to the next; its address field counts 16 bytes.
template <Major M>
constexpr uint64_t k_step = (M == Major::K ? 2 * wgmma_k : wgmma_k * span_bytes) / 16;

// A consumer's 64 rows start here in a stage of A, whichever dimension is contiguous.
template <Config C>
__device__ inline uint32_t consumer_rows(const Smem<C>& smem, int stage, int consumer)
{
    return ptx::shared_address(smem.a[stage]) + consumer * 64 * C.k * 2;
}

// Consumer: multiply the stages of one tile. A stage is released one k tile late, when the wgmma behind
// its own has been issued.
template <Config C, Type T, Major MA, Major MB>
__device__ inline void accumulate(float (&acc)[C.n / 2], Smem<C>& smem, Ring<C.stages>& ring,
                                  int32_t k_tiles, int consumer)
{
    if (k_tiles == 0) {
#pragma unroll
        for (float& x : acc)
            x = 0.0f;
        return;
    }
    const bool releases = threadIdx.x % 32 == 0;
    uint32_t previous = 0;
    for (int32_t i = 0; i < k_tiles; ++i, ring.advance()) {
        ptx::mbarrier_wait_parity(ptx::shared_address(&smem.full[ring.stage]), ring.phase);
        const uint64_t a = operand_descriptor<MA, C.k>(consumer_rows(smem, ring.stage, consumer));
        const uint64_t b = operand_descriptor<MB, C.k>(ptx::shared_address(smem.b[ring.stage]));
        ptx::wgmma_fence();
#pragma unroll
        for (int step = 0; step < C.k / wgmma_k; ++step)
            ptx::wgmma_m64k16<T, MA, MB>(acc, a + step * k_step<MA>, b + step * k_step<MB>,
                                         i > 0 || step > 0);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();
        if (i > 0 && releases)
            ptx::mbarrier_arrive(previous);
        previous = ptx::shared_address(&smem.empty[ring.stage]);
    }
    ptx::wgmma_wait_group<0>();
    if (releases)
        ptx::mbarrier_arrive(previous);
}

// Sixteen rows of a warp x 64 columns of 16-bit results into a swizzled box.
__device__ inline void fill_box_16(uint32_t box, const float* acc, float alpha, Type type, int warp,
                                   int lane)
{
    const int row = warp * 16 + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], type);
        ptx::stmatrix_x4(box + swizzle<span_bytes>(row, 2 * j + lane / 16), bits);
    }
}

// Sixteen rows of a warp x 32 columns of floats into a swizzled box.
__device__ inline void fill_box_32(unsigned char* box, const float* acc, float alpha, int warp, int lane)
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = warp * 16 + half * 8 + lane / 4, column = 8 * j + lane % 4 * 2;
            float* to = reinterpret_cast<float*>(box + swizzle<span_bytes>(row, column / 4)) + column % 4;
            *reinterpret_cast<float2*>(to) =
                make_float2(alpha * acc[4 * j + 2 * half], alpha * acc[4 * j + 2 * half + 1]);
        }
}

// Epilogue of a plain output: boxes of 64 rows x 128 bytes, each stored by TMA while the next is filled.
template <Config C>
__device__ inline void store_boxes(const Params& p, float alpha, const float (&acc)[C.n / 2], Smem<C>& smem,
                                   const Tile& tile, int consumer)
{
    const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    const Type type = p.output.type_d;
    const auto store_box = [&](int index, int columns, auto fill) {
        unsigned char* box = smem.staging[consumer][index % boxes];
        if (thread == 0)
            ptx::bulk_wait_group_read<boxes - 1>();
        ptx::bar_sync(1 + consumer, 128);
        fill(box);
        ptx::fence_proxy_async();
        ptx::bar_sync(1 + consumer, 128);
        if (thread == 0) {
            ptx::tma_store_3d(&p.d, ptx::shared_address(box), tile.n * C.n + index * columns,
                              tile.m * C.m + consumer * 64, tile.batch);
            ptx::bulk_commit_group();
        }
    };
    if (type == Type::F32) {
#pragma unroll
        for (int i = 0; i < C.n / 32; ++i)
            store_box(i, 32,
                      [&](unsigned char* box) { fill_box_32(box, acc + 16 * i, alpha, warp, lane); });
    } else {
#pragma unroll
        for (int i = 0; i < C.n / 64; ++i)
            store_box(i, 64, [&](unsigned char* box) {
                fill_box_16(ptx::shared_address(box), acc + 32 * i, alpha, type, warp, lane);
            });
    }
}

// Epilogue of everything else: each warp walks its 16 rows, 64 columns at a time.
template <Config C>
__device__ inline void store_rows(const Params& p, const Scalars& s, const float (&acc)[C.n / 2],
                                  Smem<C>& smem, const Tile& tile, int consumer)
{
    static_assert(4 * sizeof(float) * Chunk<64>::floats <= sizeof smem.staging[0]);
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    float* chunk = reinterpret_cast<float*>(smem.staging[consumer]) + warp * Chunk<64>::floats;
    const OutputBases bases(p.output, s, tile.batch);
    const int64_t row = int64_t{tile.m} * C.m + consumer * 64 + warp * epilogue_rows;
    const int64_t column = int64_t{tile.n} * C.n;
#pragma unroll
    for (int first = 0; first < C.n; first += 64) {
#pragma unroll
        for (int j = 0; j < 64; j += 8)
            Chunk<64>::put(chunk, j, reinterpret_cast<const float(&)[4]>(acc[(first + j) / 2]), lane);
        __syncwarp();
        store_chunk<64>(p.output, s, bases, chunk, row, column + first, lane);
        __syncwarp();
    }
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void consume(const Params& p, Smem<C>& smem, int consumer)
{
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = count_k_tiles(p, scalars, C.k);
    auto ring = Ring<C.stages>::reader();
    for_each_tile(p, [&](const Tile& tile) {
        float acc[C.n / 2];
        accumulate<C, T, MA, MB>(acc, smem, ring, k_tiles, consumer);
        if (p.tma_store)
            store_boxes<C>(p, scalars.alpha, acc, smem, tile, consumer);
        else
            store_rows<C>(p, scalars, acc, smem, tile, consumer);
    });
    ptx::bulk_wait_group<0>();
}

template <Config C>
__device__ inline void prepare(const Params& p, Smem<C>& smem)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < C.stages; ++i) {
            ptx::mbarrier_init(ptx::shared_address(&smem.full[i]), 1);
            ptx::mbarrier_init(ptx::shared_address(&smem.empty[i]), 4 * C.consumers);
        }
        ptx::fence_mbarrier_init();
        ptx::prefetch_tensormap(&p.a);
        ptx::prefetch_tensormap(&p.b);
        if (p.tma_store)
            ptx::prefetch_tensormap(&p.d);
    }
    __syncthreads();
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run(const Params& p, Smem<C>& smem)
{
    prepare(p, smem);
    if (threadIdx.x < 128) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (threadIdx.x == 0)
            produce<C, MA, MB>(p, smem);
    } else {
        ptx::setmaxnreg_inc<consumer_registers>();
        consume<C, T, MA, MB>(p, smem, threadIdx.x / 128 - 1);
    }
}

}  // namespace hg::sm90
