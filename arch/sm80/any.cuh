// GEMM for operands that are contiguous in no dimension, for unaligned groups and for k = 0: any strides,
// any element-aligned base. Each thread loads elements one by one into registers while the warps multiply
// the previous K tile, and then stores them to the other stage, always K-major.
//
// Barriers: one __syncthreads() per K tile, between storing a stage and reading it; with two stages it also
// keeps a warp from overwriting a stage that another warp still reads.
#pragma once

#include "arch/common/groups.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/sm80/kernel.cuh"

namespace hg::sm80 {

// Producer: a thread's chunks of one operand. Neighbouring lanes follow the dimension with the smaller
// stride.
template <int Rows, int K, int Threads>
class AnyProducer {
    static constexpr int chunks = K / chunk_elements;
    static constexpr int passes = Rows * chunks / Threads;
    static_assert(Rows * chunks % Threads == 0);

public:
    __device__ AnyProducer(const OperandParams& p, int64_t row, int64_t rows, int32_t z, int thread)
        : base_(problem_operand(p, z) + row * p.row_stride), row_stride_(p.row_stride),
          k_stride_(p.k_stride), thread_(thread),
          rows_left_(static_cast<int>(min(rows - row, int64_t{Rows}))), rows_first_(p.row_stride == 1)
    {
    }

    // Loads the K tile that starts at k_first, of which k_left elements exist; the others are zeros.
    __device__ void read(int64_t k_first, int64_t k_left)
    {
        const int k_in_tile = static_cast<int>(min(k_left, int64_t{K}));
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            const int row = row_of(pass), k = k_of(pass);
            const uint16_t* src = base_ + row * row_stride_ + (k_first + k) * k_stride_;
            uint16_t element[chunk_elements];
#pragma unroll
            for (int e = 0; e < chunk_elements; ++e)
                element[e] = row < rows_left_ && k + e < k_in_tile ? src[e * k_stride_] : 0;
#pragma unroll
            for (int e = 0; e < chunk_elements / 2; ++e)
                held_[pass][e] = element[2 * e] | uint32_t{element[2 * e + 1]} << 16;
        }
    }

    // Stores the K tile that read() has loaded.
    __device__ void store(uint16_t* tile) const
    {
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            const int offset = tile_offset<Major::K, Rows, K>(row_of(pass), k_of(pass));
            *reinterpret_cast<uint4*>(reinterpret_cast<char*>(tile) + offset) =
                make_uint4(held_[pass][0], held_[pass][1], held_[pass][2], held_[pass][3]);
        }
    }

private:
    __device__ int index(int pass) const { return thread_ + pass * Threads; }
    __device__ int row_of(int pass) const
    {
        return rows_first_ ? index(pass) % Rows : index(pass) / chunks;
    }
    __device__ int k_of(int pass) const
    {
        return (rows_first_ ? index(pass) / Rows : index(pass) % chunks) * chunk_elements;
    }

    const uint16_t* base_;
    int64_t row_stride_, k_stride_;
    int thread_, rows_left_;
    bool rows_first_;
    uint32_t held_[passes][chunk_elements / 2];
};

template <Config C, Type T, typename Find = PlainTiles>
__device__ inline void run_any_tile(const Params& p, Smem<C>& smem)
{
    using Share = WarpTile<T, Major::K, Major::K, C.tile_k, C.warp_m(), C.warp_n()>;
    static_assert(C.stages == 2);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const WarpPlace<C> in_tile(warp);
    const TilePlace at = Find::template find<C>(p, Scheduler(p, blockIdx.x).tile);
    if (!Find::exists(at))
        return;
    Scalars scalars = load_scalars(p.output);
    int64_t first_k = 0, k = scalars.alpha == 0.0f ? 0 : p.k;
    if constexpr (Find::groups_k) {
        const KRange range = KRange::of_group(p, at.batch);
        first_k = range.first, k = range.count;
        scalars = scalars_of_k_group(scalars, range.count);
    }

    const typename Share::Lane offsets(in_tile.m, in_tile.n, lane);
    typename Share::Accumulator acc;
    acc.clear();
    if (k > 0) {
        AnyProducer<C.tile_m, C.tile_k, C.threads()> a(p.a, at.row, at.end, at.batch, threadIdx.x);
        AnyProducer<C.tile_n, C.tile_k, C.threads()> b(p.b, at.column, p.output.n, at.batch, threadIdx.x);
        a.read(first_k, k);
        b.read(first_k, k);
        int stage = 0;
        for (int64_t first = 0; first < k; first += C.tile_k, stage ^= 1) {
            a.store(smem.a[stage]);
            b.store(smem.b[stage]);
            __syncthreads();
            if (first + C.tile_k < k) {
                a.read(first_k + first + C.tile_k, k - first - C.tile_k);
                b.read(first_k + first + C.tile_k, k - first - C.tile_k);
            }
            Share::accumulate(
                acc, {offsets, ptx::shared_address(smem.a[stage]), ptx::shared_address(smem.b[stage])});
        }
    }
    __syncthreads();
    store<C, T, Find>(p, Find::output(p, at), scalars, acc, &smem, at, warp, lane);
}

}  // namespace hg::sm80
