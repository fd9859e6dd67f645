// The kernels of an article about sm_120 (README.md): what they do is from its text, the code is our own.
// One kind copies with cp.async; the other with TMA, issued by thread 0, and loads fragments one k step
// ahead. m and n are multiples of 128, k of a stage's k, and one stage less than there are must have k's.
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cp_async.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ring.cuh"
#include "tests/evidence/seed_sm120/tile.cuh"

namespace hg::seed {

extern __shared__ __align__(1024) unsigned char smem[];

// One thread's part of the copies: 16 bytes of every 64th row of A and of every 16th of B.
class Copier {
public:
    __device__ Copier(const Params& p, Tile tile)
        : a_row_(threadIdx.x / 4), a_column_(threadIdx.x % 4 * 8), b_row_(threadIdx.x / 16),
          b_column_(threadIdx.x % 16 * 8), n_(p.n), k_(p.k),
          a_(p.a_data + (int64_t{tile.m} * tile_m + a_row_) * p.k + a_column_),
          b_(p.b_data + int64_t{b_row_} * p.n + tile.n * tile_n + b_column_)
    {
    }

    // The next stage's 32 k's.
    __device__ void copy(uint32_t a, uint32_t b)
    {
#pragma unroll
        for (int row = 0; row < tile_m; row += 64)
            ptx::cp_async_cg_16(a + tile_offset<Major::K, tile_m, 32>(a_row_ + row, a_column_),
                                a_ + int64_t{row} * k_, 16);
#pragma unroll
        for (int row = 0; row < 32; row += 16)
            ptx::cp_async_cg_16(b + tile_offset<Major::MN, tile_n, 32>(b_column_, b_row_ + row),
                                b_ + int64_t{row} * n_, 16);
        ptx::cp_async_commit_group();
        a_ += 32;
        b_ += int64_t{32} * n_;
    }

private:
    int a_row_, a_column_, b_row_, b_column_, n_, k_;
    const uint16_t *a_, *b_;
};

template <Type T>
__device__ inline void multiply_stage(Accumulator& acc, uint32_t a, uint32_t b, const Place& warp)
{
#pragma unroll
    for (int k = 0; k < 32; k += 16) {
        Fragments f;
        load<32>(f, a, b, warp, k);
        multiply<T>(acc, f);
    }
}

template <Type T, int K, int Stages>
__device__ inline void run_cp_async(const Params& p)
{
    static_assert(K == 32);
    const uint32_t base = ptx::shared_address(smem);
    const Tile tile = own_tile(p);
    const Place warp;
    Copier copier(p, tile);
    Accumulator acc;
    acc.clear();
    for (int i = 0; i < Stages - 1; ++i)
        copier.copy(stage_a<32>(base, i), stage_b<32>(base, i));
    ptx::cp_async_wait_group<Stages - 2>();
    __syncthreads();
    int filled = Stages - 1, used = 0;
    const auto next = [](int stage) { return stage + 1 == Stages ? 0 : stage + 1; };
    for (int k = (Stages - 1) * 32; k < p.k; k += 32) {
        copier.copy(stage_a<32>(base, filled), stage_b<32>(base, filled));
        multiply_stage<T>(acc, stage_a<32>(base, used), stage_b<32>(base, used), warp);
        filled = next(filled);
        used = next(used);
        ptx::cp_async_wait_group<Stages - 2>();
        __syncthreads();
    }
    ptx::cp_async_wait_group<0>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) {
        multiply_stage<T>(acc, stage_a<32>(base, used), stage_b<32>(base, used), warp);
        used = next(used);
    }
    __syncthreads();
    store_tile<T>(p, tile, acc, smem);
}

// Thread 0 loads the k's from `k` on: lines of A and two panels of B.
template <int K>
__device__ inline void load_stage(const Params& p, Tile tile, uint32_t base, int stage, uint32_t full,
                                  int32_t k)
{
    constexpr int panel_bytes = 2 * 64 * K;
    if (threadIdx.x != 0)
        return;
    const uint32_t b = stage_b<K>(base, stage);
    ptx::mbarrier_arrive_expect_tx(full, stage_bytes(K));
    ptx::tma_load_3d_cta(stage_a<K>(base, stage), &p.a, full, k, tile.m * tile_m, 0);
    ptx::tma_load_3d_cta(b, &p.b, full, tile.n * tile_n, k, 0);
    ptx::tma_load_3d_cta(b + panel_bytes, &p.b, full, tile.n * tile_n + 64, k, 0);
}

template <Type T, int K>
__device__ inline void multiply_ahead(Accumulator& acc, uint32_t a, uint32_t b, const Place& warp)
{
    Fragments f[2];
    load<K>(f[0], a, b, warp, 0);
#pragma unroll
    for (int step = 0; step < K / 16; ++step) {
        if (step + 1 < K / 16)
            load<K>(f[(step + 1) % 2], a, b, warp, 16 * (step + 1));
        multiply<T>(acc, f[step % 2]);
    }
}

template <Type T, int K, int Stages>
__device__ inline void run_tma(const Params& p)
{
    const uint32_t base = ptx::shared_address(smem), full = base + Stages * stage_bytes(K);
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; ++i)
            ptx::mbarrier_init(full + 8 * i, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    const Tile tile = own_tile(p);
    const Place warp;
    Accumulator acc;
    acc.clear();
    for (int i = 0; i < Stages - 1; ++i)
        load_stage<K>(p, tile, base, i, full + 8 * i, i * K);
    int filled = Stages - 1;
    auto used = Ring<Stages>::reader();
    const auto multiply_next = [&] {
        ptx::mbarrier_wait_parity(full + 8 * used.stage, used.phase);
        multiply_ahead<T, K>(acc, stage_a<K>(base, used.stage), stage_b<K>(base, used.stage), warp);
        used.advance();
    };
    for (int32_t k = (Stages - 1) * K; k < p.k; k += K) {
        load_stage<K>(p, tile, base, filled, full + 8 * filled, k);
        multiply_next();
        __syncthreads();
        filled = filled + 1 == Stages ? 0 : filled + 1;
    }
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i)
        multiply_next();
    __syncthreads();
    store_tile<T>(p, tile, acc, smem);
}

}  // namespace hg::seed

using namespace hg;

#define ENTRY(name, type, copies, k, stages, residents)                                                    \
    extern "C" __global__ void __launch_bounds__(seed::threads, residents)                                 \
        name(const __grid_constant__ seed::Params p)                                                       \
    {                                                                                                      \
        seed::run_##copies<type, k, stages>(p);                                                            \
    }

#define KERNEL(name, ...)                                                                                  \
    ENTRY(name##_f16, Type::F16, __VA_ARGS__)                                                              \
    ENTRY(name##_bf16, Type::BF16, __VA_ARGS__)

#include "tests/evidence/seed_sm120/kernels.def"
