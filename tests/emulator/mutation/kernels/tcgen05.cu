// Warp-specialised persistent GEMM for sm_100a by pairs of CTAs, in two forms: pair_1 multiplies with
// .cta_group::1 in each CTA and shares B by multicast, pair_2 multiplies with .cta_group::2.
//
// Warp 0 fills the stages, warp 1 multiplies into one of two accumulators, warps 2 to 5 store the other.
// Barriers, one of each a stage or an accumulator:
//   full   a stage's bytes have landed; pair_2: those of both CTAs, at the even one
//   empty  it has been multiplied; pair_1: by both CTAs, as each writes half of the other's B
//   ready  an accumulator is complete
//   taken  it has been read; count: the warps that store, pair_2: of both CTAs, at the even one
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/swizzle.cuh"
#include "tests/emulator/mutation/kernels/params.hpp"
#include "tests/emulator/mutation/kernels/tcgen05_ptx.cuh"

using namespace mutation;
using namespace mutation::tcgen05;
using hg::Ring;
using hg::ptx::shared_address;

namespace {

constexpr int a_bytes = tile_m * tile_k * 2, half_b_bytes = copy_n * tile_k * 2;
constexpr int accumulators = 2, storing_warps = 4, box_bytes = store_rows * store_columns * 4;

template <int Group>
struct alignas(1024) Smem {
    static constexpr int stages = Group == 1 ? stages_1 : stages_2;
    static constexpr int b_bytes = half_b_bytes * (3 - Group);
    unsigned char a[stages][a_bytes];
    unsigned char b[stages][b_bytes];
    unsigned char staging[storing_warps][2][box_bytes];
    uint64_t full[stages], empty[stages], ready[accumulators], taken[accumulators];
    uint32_t tmem;
};

template <typename Body>
__device__ void for_each_tile(const Params& p, Body body)
{
    for (int tile = blockIdx.x / 2; tile < p.tiles; tile += gridDim.x / 2)
        body(tile % p.tiles_m * 2 * tile_m, tile / p.tiles_m * tile_n);
}

template <int Group>
__device__ void produce(const Params& p, Smem<Group>& smem, uint32_t rank)
{
    auto ring = Ring<Smem<Group>::stages>::writer();
    for_each_tile(p, [&](int row, int column) {
        for (int k = 0; k < p.k_tiles; ++k, ring.advance()) {
            const uint32_t full = shared_address(&smem.full[ring.stage]);
            const uint32_t a = shared_address(smem.a[ring.stage]), b = shared_address(smem.b[ring.stage]);
            const int y = row + rank * tile_m, y_b = column + rank * copy_n;
            ptx::wait_cluster(shared_address(&smem.empty[ring.stage]), ring.phase);
            if constexpr (Group == 1) {
                hg::ptx::mbarrier_arrive_expect_tx(full, a_bytes + 2 * half_b_bytes);
                ptx::load(a, &p.a, full, k * tile_k, y);
                ptx::load_multicast(b + rank * half_b_bytes, &p.b, full, k * tile_k, y_b, 3);
            } else {
                if (rank == 0)
                    hg::ptx::mbarrier_arrive_expect_tx(full, 2 * (a_bytes + half_b_bytes));
                const uint32_t barrier = ptx::map_rank(full, 0);
                ptx::load_pair(a, &p.a, barrier, k * tile_k, y);
                ptx::load_pair(b, &p.b, barrier, k * tile_k, y_b);
            }
        }
    });
    // The other CTA's last commits must not meet one that has left.
#pragma unroll 1
    for (int i = 0; i < Smem<Group>::stages; ++i, ring.advance())
        ptx::wait_cluster(shared_address(&smem.empty[ring.stage]), ring.phase);
}

// K-major with 128-byte swizzle: 8 rows of 128 bytes follow one another.
__device__ uint64_t descriptor(uint32_t address)
{
    constexpr uint64_t stride = 1024 / 16, version = 1, swizzle_128 = 2;
    return (uint64_t{address} & 0x3ffff) >> 4 | uint64_t{1} << 16 | stride << 32 | version << 46 |
           swizzle_128 << 61;
}

template <int Group>
__device__ void multiply_tiles(const Params& p, Smem<Group>& smem, uint32_t tmem)
{
    constexpr uint32_t f32 = 1, shape = f32 << 4 | (tile_n / 8) << 17 | (Group * tile_m / 16) << 24;
    auto ring = Ring<Smem<Group>::stages>::reader();
    auto result = Ring<accumulators>::writer();
    for_each_tile(p, [&](int, int) {
        ptx::wait_cluster(shared_address(&smem.taken[result.stage]), result.phase);
        ptx::fence_after();
        for (int k = 0; k < p.k_tiles; ++k, ring.advance()) {
            ptx::wait_cluster(shared_address(&smem.full[ring.stage]), ring.phase);
            const uint64_t a = descriptor(shared_address(smem.a[ring.stage]));
            const uint64_t b = descriptor(shared_address(smem.b[ring.stage]));
#pragma unroll
            for (int step = 0; step < tile_k / 16; ++step)
                ptx::multiply<Group>(tmem + result.stage * tile_n, a + 2 * step, b + 2 * step, shape,
                                     k > 0 || step > 0);
            ptx::commit_multicast<Group>(shared_address(&smem.empty[ring.stage]), 3);
        }
        if constexpr (Group == 1)
            ptx::commit<Group>(shared_address(&smem.ready[result.stage]));
        else
            ptx::commit_multicast<Group>(shared_address(&smem.ready[result.stage]), 3);
        result.advance();
    });
}

// A warp's 32 rows, one a lane.
template <int Group>
__device__ void store_tiles(const Params& p, Smem<Group>& smem, uint32_t tmem, uint32_t rank)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    auto result = Ring<accumulators>::reader();
    for_each_tile(p, [&](int row, int column) {
        ptx::wait_cluster(shared_address(&smem.ready[result.stage]), result.phase);
        ptx::fence_after();
        const int first_row = row + rank * tile_m + warp * 32;
#pragma unroll 1
        for (int first = 0; first < tile_n; first += store_columns) {
            unsigned char* box = smem.staging[warp][first / store_columns % 2];
            float v[2][16];
            ptx::tmem_load(v[0], tmem + (warp * 32 << 16) + result.stage * tile_n + first);
            ptx::tmem_load(v[1], tmem + (warp * 32 << 16) + result.stage * tile_n + first + 16);
            ptx::tmem_wait_load();
            if (p.tma_store) {
                if (lane == 0)
                    hg::ptx::bulk_wait_group_read<1>();
                __syncwarp();
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    *reinterpret_cast<float4*>(box + hg::swizzle<128>(lane, i)) =
                        reinterpret_cast<const float4*>(v)[i];
                hg::ptx::fence_proxy_async();
                __syncwarp();
                if (lane == 0) {
                    ptx::store(&p.d, shared_address(box), column + first, first_row);
                    hg::ptx::bulk_commit_group();
                }
            } else if (first_row + lane < p.m) {
                float* to = p.d_rows + (first_row + lane) * p.ldd + column + first;
#pragma unroll
                for (int i = 0; i < store_columns; ++i)
                    if (column + first + i < p.n)
                        to[i] = v[i / 16][i % 16];
            }
        }
        ptx::fence_before();
        if (lane == 0) {
            const uint32_t taken = shared_address(&smem.taken[result.stage]);
            ptx::arrive_remote(ptx::map_rank(taken, Group == 1 ? rank : 0));
        }
        result.advance();
    });
    if (lane == 0)
        hg::ptx::bulk_wait_group<0>();
}

template <int Group>
__device__ void prepare(Smem<Group>& smem)
{
    for (int i = 0; i < Smem<Group>::stages; ++i) {
        hg::ptx::mbarrier_init(shared_address(&smem.full[i]), 1);
        hg::ptx::mbarrier_init(shared_address(&smem.empty[i]), 3 - Group);
    }
    for (int i = 0; i < accumulators; ++i) {
        hg::ptx::mbarrier_init(shared_address(&smem.ready[i]), 1);
        hg::ptx::mbarrier_init(shared_address(&smem.taken[i]), Group * storing_warps);
    }
    hg::ptx::fence_mbarrier_init();
}

template <int Group>
__device__ void run(const Params& p)
{
    extern __shared__ __align__(1024) unsigned char dynamic_smem[];
    auto& smem = *reinterpret_cast<Smem<Group>*>(dynamic_smem);
    const int warp = threadIdx.x / 32;
    const uint32_t rank = ptx::cluster_rank();
    if (threadIdx.x == 0)
        prepare(smem);
    if (warp == 1)
        ptx::tmem_allocate<Group>(shared_address(&smem.tmem), accumulators * tile_n);
    ptx::cluster_sync();
    const uint32_t tmem = *static_cast<volatile uint32_t*>(&smem.tmem);
    if (threadIdx.x == 0)
        produce<Group>(p, smem, rank);
    else if (threadIdx.x == 32 && (Group == 1 || rank == 0))
        multiply_tiles<Group>(p, smem, tmem);
    else if (warp >= 2)
        store_tiles<Group>(p, smem, tmem, rank);
    __syncwarp();
    ptx::cluster_sync();
    if (warp == 1)
        ptx::tmem_free<Group>(tmem, accumulators * tile_n);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1) __cluster_dims__(2, 1, 1)
    pair_1(const __grid_constant__ Params p)
{
    run<1>(p);
}

extern "C" __global__ void __launch_bounds__(threads, 1) __cluster_dims__(2, 1, 1)
    pair_2(const __grid_constant__ Params p)
{
    run<2>(p);
}
