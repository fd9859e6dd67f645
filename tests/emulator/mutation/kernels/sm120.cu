// Warp-specialised persistent GEMM for sm_120: TMA and mbarriers for the operands, ldmatrix and mma.sync.
//
// Warp 4 fills the stages; warps 0 to 3 multiply a quarter of the tile each and store it. Barriers, one of
// each a stage: full (the bytes have landed) and empty (each of the four warps has read its fragments).
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/warp_tile.cuh"
#include "tests/emulator/mutation/kernels/params.hpp"

using namespace mutation;
using namespace mutation::sm120;
using hg::Ring;
using hg::ptx::shared_address;

namespace {

constexpr int warps = 4, warp_m = 32, warp_n = 32;
using Share =
    hg::WarpTile<hg::Type::F16, hg::Major::K, hg::Major::K, tile_m, tile_n, tile_k, warp_m, warp_n>;

struct alignas(1024) Smem {
    unsigned char a[stages][tile_m * tile_k * 2];
    unsigned char b[stages][tile_n * tile_k * 2];
    unsigned char staging[warps][2][store_rows * store_columns * 4];
    uint64_t full[stages], empty[stages];
};

template <typename Body>
__device__ void for_each_tile(const Params& p, Body body)
{
    for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x)
        body(tile % p.tiles_m * tile_m, tile / p.tiles_m * tile_n);
}

__device__ void produce(const Params& p, Smem& smem)
{
    auto ring = Ring<stages>::writer();
    for_each_tile(p, [&](int row, int column) {
        for (int k = 0; k < p.k_tiles; ++k, ring.advance()) {
            const uint32_t full = shared_address(&smem.full[ring.stage]);
            hg::ptx::mbarrier_wait_parity(shared_address(&smem.empty[ring.stage]), ring.phase);
            hg::ptx::mbarrier_arrive_expect_tx(full, sizeof smem.a[0] + sizeof smem.b[0]);
            hg::ptx::tma_load_3d(shared_address(smem.a[ring.stage]), &p.a, full, k * tile_k, row, 0);
            hg::ptx::tma_load_3d(shared_address(smem.b[ring.stage]), &p.b, full, k * tile_k, column, 0);
        }
    });
}

// Two fragments of 16 rows; each goes through a box of its own.
__device__ void store_boxes(const Params& p, Smem& smem, const Share::Accumulator& acc, int row, int column)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < warp_m / store_rows; ++i) {
        unsigned char* box = smem.staging[warp][i];
        if (lane == 0)
            hg::ptx::bulk_wait_group_read<1>();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < warp_n / 8; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int line = half * 8 + lane / 4, at = 8 * j + lane % 4 * 2;
                float* to = reinterpret_cast<float*>(box + hg::swizzle<128>(line, at / 4)) + at % 4;
                *reinterpret_cast<float2*>(to) =
                    make_float2(acc.v[i][j][2 * half], acc.v[i][j][2 * half + 1]);
            }
        hg::ptx::fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            hg::ptx::tma_store_3d(&p.d, shared_address(box), column, row + i * store_rows, 0);
            hg::ptx::bulk_commit_group();
        }
    }
}

__device__ void store_rows_plainly(const Params& p, const Share::Accumulator& acc, int row, int column)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i)
#pragma unroll
        for (int j = 0; j < warp_n / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int y = row + 16 * i + e / 2 * 8 + lane / 4,
                          x = column + 8 * j + lane % 4 * 2 + e % 2;
                if (y < p.m && x < p.n)
                    p.d_rows[y * p.ldd + x] = acc.v[i][j][e];
            }
}

__device__ void consume(const Params& p, Smem& smem)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row_a = warp / 2 * warp_m, row_b = warp % 2 * warp_n;
    auto ring = Ring<stages>::reader();
    for_each_tile(p, [&](int row, int column) {
        Share::Accumulator acc;
        acc.clear();
        for (int k = 0; k < p.k_tiles; ++k, ring.advance()) {
            hg::ptx::mbarrier_wait_parity(shared_address(&smem.full[ring.stage]), ring.phase);
            Share::accumulate(acc, shared_address(smem.a[ring.stage]), shared_address(smem.b[ring.stage]),
                              row_a, row_b, lane);
            if (lane == 0)  // mma.sync had all lanes' fragments
                hg::ptx::mbarrier_arrive(shared_address(&smem.empty[ring.stage]));
        }
        if (p.tma_store)
            store_boxes(p, smem, acc, row + row_a, column + row_b);
        else
            store_rows_plainly(p, acc, row + row_a, column + row_b);
    });
    if (lane == 0)
        hg::ptx::bulk_wait_group<0>();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1) tma_mma(const __grid_constant__ Params p)
{
    extern __shared__ __align__(1024) unsigned char dynamic_smem[];
    auto& smem = *reinterpret_cast<Smem*>(dynamic_smem);
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) {
            hg::ptx::mbarrier_init(shared_address(&smem.full[i]), 1);
            hg::ptx::mbarrier_init(shared_address(&smem.empty[i]), warps);
        }
        hg::ptx::fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 32 * warps)
        produce(p, smem);
    else if (threadIdx.x < 32 * warps)
        consume(p, smem);
}
