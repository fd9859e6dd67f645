// GEMM for few columns of B or for small problems, whose operands TMA cannot address or would read in too
// small boxes: from global memory straight into the fragments of mma.sync, without stages in shared memory.
//
// Of a step of 32 K's each of the four lanes that share a fragment's row loads eight, one vector of 16
// bytes: mma.sync sees the K's in another order, the same for both operands. Loads are aligned 16-byte
// vectors; if the operand's vectors are not, extract_vector() takes one out of two neighbours, as in
// common/repack/copy.cuh. The warps of a CTA alternate along K. A reduction adds their sums in the order of
// the warps, then in that of the CTAs of a cluster, which have a slice of K each.
//
// Barriers:
//   __syncthreads()   the barrier is initialised; all warps have stored their sums in shared memory; these
//                     are added up.
//   cluster barrier   before any CTA sends partial sums: the barriers of all CTAs are initialised.
//   partials_full     all other slices -> CTA 0 of the cluster. Count 1: CTA 0's arrive, which expects the
//                     bytes of all other slices; completes when they have landed. No CTA waits at the end.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/mma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/direct/operands.cuh"

#include <cstdint>
#include <utility>

namespace hg::sm90 {

// Sums of a warp: fragments of 16 rows by eight columns.
template <DirectConfig C, Major M>
using DirectSums = float[direct_warp_m(C, M) / 16][C.tile_n / 8][4];

__device__ inline uint32_t word(const uint4& v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// K's 2 pair and 2 pair + 1 of A: of one vector (K-major), or of row r of the eight rows of each vector
// (MN-major).
template <Major M>
__device__ inline uint32_t pair_of(const uint4 (&a_vectors)[direct_vectors], int r, int pair)
{
    if constexpr (M == Major::K)
        return word(a_vectors[r], pair);
    else
        return __byte_perm(word(a_vectors[2 * pair], r / 2), word(a_vectors[2 * pair + 1], r / 2),
                           r % 2 ? 0x7632 : 0x5410);
}

// The rows of fragment i are g and g + 8 of its 16 (K-major), or rows i and i + 4 of the eight of each g
// (MN-major).
template <DirectConfig C, Major M, Type T>
__device__ inline void multiply_step(DirectSums<C, M>& sums, const uint4 (&a_vectors)[direct_vectors],
                                     const uint4 (&b_vectors)[DirectB<C, M>::vectors])
{
    constexpr int along = DirectA<C, M>::along;
#pragma unroll
    for (int part = 0; part < 2 * along; ++part) {
        const int vector = part / 2, pair = part % 2 * 2;
#pragma unroll
        for (int i = 0; i < direct_warp_m(C, M) / 16; ++i) {
            const int low = M == Major::K ? 2 * i * along + vector : i;
            const int high = M == Major::K ? low + along : i + 4;
            const uint32_t a[4] = {pair_of<M>(a_vectors, low, pair), pair_of<M>(a_vectors, high, pair),
                                   pair_of<M>(a_vectors, low, pair + 1),
                                   pair_of<M>(a_vectors, high, pair + 1)};
#pragma unroll
            for (int j = 0; j < C.tile_n / 8; ++j)
                ptx::mma_m16n8k16<T>(sums[i][j], a, word(b_vectors[j * along + vector], pair),
                                     word(b_vectors[j * along + vector], pair + 1));
        }
    }
}

// The first rows of a warp, its problem, and a lane's `g` and `t` as in DirectA.
struct DirectPlace {
    int32_t first_m, first_n, z;
    int g, t;

    // The compiler cannot see that the copy has the same values, and computes again what follows from them.
    __device__ DirectPlace opaque_copy() const
    {
        const auto copy = [](int32_t value) { return static_cast<int32_t>(ptx::mov_b32(value)); };
        return {copy(first_m), copy(first_n), copy(z), g, t};
    }

    template <DirectConfig C, Major M>
    __device__ DirectA<C, M> a(const DirectParams& p) const
    {
        return DirectA<C, M>(p.a, first_m, z, g, t);
    }
    template <DirectConfig C, Major M>
    __device__ DirectB<C, M> b(const DirectParams& p) const
    {
        return DirectB<C, M>(p.b, first_n, z, g);
    }
};

// The steps of a warp: every direct_sharers()-th from `first` to before `last`.
struct DirectSteps {
    int32_t first, last;
    int32_t end;    // steps from here on may touch elements past the end of K
    bool at_begin;  // the first step may touch elements before the operands' first ones

    // The aligned loads of a vector that is not aligned touch up to 14 bytes before or after it.
    template <DirectConfig C, Major M>
    __device__ static DirectSteps of(const DirectParams& p, const DirectA<C, M>& a, const DirectB<C, M>& b,
                                     int32_t first, int32_t last)
    {
        constexpr int step = direct_step(C, M);
        const bool full_vectors = M == Major::K || p.a.rows % 8 == 0;
        const bool exact = a.aligned && full_vectors && (b.aligned || b.k_stride != 1);
        const int32_t inside = p.k - (exact ? 0 : 8);
        return {first, last, min(last, inside < step ? 0 : inside / step), !exact && first == 0};
    }
};

// Multiplies the steps whose loads stay inside the operands; returns the first step after them. Skips step
// 0 if at_begin.
template <DirectConfig C, Major M, Type T, bool Aligned>
__device__ inline int32_t multiply_inside(DirectSums<C, M>& sums, const DirectA<C, M>& a,
                                          const DirectB<C, M>& b, const DirectSteps& steps, int t)
{
    constexpr int step = direct_step(C, M), sharers = direct_sharers(C, M);
    int32_t index = steps.first + (steps.at_begin ? sharers : 0);
#pragma unroll 1
    for (; index < steps.end; index += sharers) {
        const int32_t k = index * step + 8 * t;
        uint4 a_vectors[direct_vectors], b_vectors[DirectB<C, M>::vectors];
        a.template load<Aligned>(a_vectors, index);
        if (b.k_stride == 1)
            b.load(b_vectors, k);
        else
            b.gather(b_vectors, k, step);
        multiply_step<C, M, T>(sums, a_vectors, b_vectors);
    }
    return index;
}

// Multiplies the first step if at_begin, and those from `rest` on, with loads of single elements of the
// operands. It computes their addresses again: kept during the other steps, they would spill.
template <DirectConfig C, Major M, Type T>
__device__ inline void multiply_edges(DirectSums<C, M>& sums, const DirectParams& p, DirectPlace place,
                                      const DirectSteps& steps, int32_t rest)
{
    constexpr int step = direct_step(C, M), sharers = direct_sharers(C, M);
    place = place.opaque_copy();
    const auto a = place.a<C, M>(p);
    const auto b = place.b<C, M>(p);
#pragma unroll 1
    for (int32_t index = steps.at_begin ? 0 : rest; index < steps.last;
         index = index < rest ? rest : index + sharers) {
        const int32_t k = index * step + 8 * place.t;
        uint4 a_vectors[direct_vectors], b_vectors[DirectB<C, M>::vectors];
        a.gather(a_vectors, index, p.k - k);
        b.gather(b_vectors, k, p.k - k);
        multiply_step<C, M, T>(sums, a_vectors, b_vectors);
    }
}

// Stores a warp's sums in shared memory, its first row at `first_m`.
template <DirectConfig C, Major M>
__device__ inline void store_warp_sums(float (*to)[direct_pitch(C)], const DirectSums<C, M>& sums,
                                       int first_m, int g, int t)
{
#pragma unroll
    for (int i = 0; i < direct_warp_m(C, M) / 16; ++i)
#pragma unroll
        for (int j = 0; j < C.tile_n / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int m = M == Major::K ? 16 * i + g + e / 2 * 8 : 8 * g + i + e / 2 * 4;
                to[8 * j + 2 * t + e % 2][first_m + m] = sums[i][j][e];
            }
}

__device__ inline float4 operator+(const float4& a, const float4& b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Adds up the sums of all sharers, in place of the first one's. Slices other than the first send theirs to
// it; it adds them as well.
template <DirectConfig C, Major M>
__device__ inline void add_warps(const DirectParams& p, DirectSmem<C>& smem, int slice)
{
#pragma unroll 1
    for (int index = threadIdx.x; index < C.tile_n * C.tile_m / 4; index += C.threads()) {
        const int n = index / (C.tile_m / 4), m = index % (C.tile_m / 4) * 4;
        float4 sum = *reinterpret_cast<const float4*>(&smem.sums[0][n][m]);
#pragma unroll
        for (int sharer = 1; sharer < direct_sharers(C, M); ++sharer)
            sum = sum + *reinterpret_cast<const float4*>(&smem.sums[sharer][n][m]);
        if (slice > 0) {
            const uint32_t to = ptx::map_shared(ptx::shared_address(&smem.incoming[slice - 1][n][m]), 0);
            const float v[4] = {sum.x, sum.y, sum.z, sum.w};
            ptx::store_async_f32x4(to, v, ptx::map_shared(ptx::shared_address(&smem.partials_full), 0));
            continue;
        }
        if (p.split.value > 1)
            ptx::mbarrier_wait_parity(ptx::shared_address(&smem.partials_full), 0);
        for (int other = 1; other < p.split.value; ++other)
            sum = sum + *reinterpret_cast<const float4*>(&smem.incoming[other - 1][n][m]);
        *reinterpret_cast<float4*>(&smem.sums[0][n][m]) = sum;
    }
}

// A thread's rows of the sums, which are contiguous along M: the Sums of finish_vectors().
template <DirectConfig C>
struct DirectRows {
    static constexpr int vectors_of_c = 4;
    float (*sums)[direct_pitch(C)];
    bool swap_ab;
    int first, step, column;

    __device__ float& at(int row, int column) const
    {
        return swap_ab ? sums[row][column] : sums[column][row];
    }

    __device__ void get(float (&v)[8], int r) const
    {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = at(first + r * step, column + e);
    }

    __device__ void put(const float (&v)[8], int r) const
    {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            at(first + r * step, column + e) = v[e];
    }
};

template <DirectConfig C, Type T>
__device__ inline void store_direct(const DirectParams& p, const Scalars& s, float (*sums)[direct_pitch(C)],
                                    const Tile& tile)
{
    const int vectors = (p.swap_ab ? C.tile_m : C.tile_n) / epilogue_vector, step = C.threads() / vectors;
    const DirectRows<C> own{sums, p.swap_ab, static_cast<int>(threadIdx.x) / vectors, step,
                            static_cast<int>(threadIdx.x) % vectors * epilogue_vector};
    const int64_t m = int64_t{tile.m} * C.tile_m, n = int64_t{tile.n} * C.tile_n;
    const int64_t i = p.swap_ab ? n : m, j = p.swap_ab ? m : n;
    const auto rows = static_cast<int>(min(p.output.m - i, int64_t{p.swap_ab ? C.tile_n : C.tile_m}));
    const auto columns = static_cast<int>(min(p.output.n - j, int64_t{p.swap_ab ? C.tile_m : C.tile_n}));
    const OutputBases bases(p.output, s, tile.batch);
    if (!bases.vectors || columns % epilogue_vector != 0) {
        finish_elements(p.output, s, bases, i, j, rows, columns, threadIdx.x / 32, C.warps,
                        [&](int row, int column) -> float& { return own.at(row, column); });
        return;
    }
    const ThreadRows at{i + own.first, j + own.column, step, (rows - own.first + step - 1) / step};
    if (own.column < columns && own.first < step)
        finish_vectors<T>(p.output, s, OutputColumn<T>(p.output, bases, at), at.rows, own,
                          [&] { return std::pair(bases, at); });
}

template <DirectConfig C>
__device__ inline void prepare_direct(const DirectParams& p, DirectSmem<C>& smem)
{
    if (p.split.value == 1)
        return;
    if (threadIdx.x == 0) {
        const uint32_t partials_full = ptx::shared_address(&smem.partials_full);
        ptx::mbarrier_init(partials_full, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect_tx(partials_full, (p.split.value - 1) * C.tile_n * C.tile_m * 4);
    }
    __syncthreads();
    ptx::cluster_arrive_relaxed();
}

struct DirectPart {
    Tile tile;
    int32_t slice;
};

// The tile and the slice of K that this CTA multiplies.
__device__ inline DirectPart direct_part(const DirectParams& p)
{
    const auto block = static_cast<int32_t>(blockIdx.x);
    const int32_t cluster = p.split.quotient(block);
    return {tile_at(p.grid, cluster), block - cluster * p.split.value};
}

template <DirectConfig C, Type T, Major M>
__device__ inline void run_direct(const DirectParams& p, DirectSmem<C>& smem)
{
    prepare_direct<C>(p, smem);
    constexpr int sharers = direct_sharers(C, M);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int sharer = warp % sharers, first_m = warp / sharers * direct_warp_m(C, M);
    const auto [tile, slice] = direct_part(p);
    const int32_t first = p.slice_start[slice] + sharer, last = p.slice_start[slice + 1];
    const DirectPlace place{tile.m * C.tile_m + first_m, tile.n * C.tile_n, tile.batch, lane / 4, lane % 4};
    if (p.prefetches && (first + 1) * direct_step(C, M) <= p.k)
        place.a<C, M>(p).prefetch(first);
    ptx::wait_for_earlier_grids();
    if (p.pdl_early)
        ptx::launch_dependents();
    const Scalars scalars = load_scalars(p.output);
    DirectSums<C, M> sums = {};
    if (scalars.alpha != 0.0f) {
        const auto a = place.a<C, M>(p);
        const auto b = place.b<C, M>(p);
        const auto steps = DirectSteps::of<C, M>(p, a, b, first, last);
        const int32_t rest = a.aligned ? multiply_inside<C, M, T, true>(sums, a, b, steps, place.t)
                                       : multiply_inside<C, M, T, false>(sums, a, b, steps, place.t);
        multiply_edges<C, M, T>(sums, p, place, steps, rest);
    }
    ptx::launch_dependents();
    store_warp_sums<C, M>(smem.sums[sharer], sums, first_m, place.g, place.t);
    __syncthreads();
    if (p.split.value > 1)
        ptx::cluster_wait();
    add_warps<C, M>(p, smem, slice);
    if (slice > 0)
        return;
    __syncthreads();
    store_direct<C, T>(p, scalars, smem.sums[0], tile);
}

}  // namespace hg::sm90
