// Multiplies an MN-major A, however aligned, by up to four columns of B: lanes multiply vectors of eight
// rows of A with fmaf(), so that a warp reads up to 512 contiguous bytes of a column of A at a time.
//
// A group of lanes, as many as a tile has vectors along M, reads one column of A, that is one K, at a time;
// the groups of a CTA alternate along K. A group's columns are a multiple of eight column strides apart,
// which is whole vectors, so that the tile begins at the same offset inside a vector in all of them. Hence
// lanes load aligned vectors throughout, and shift the sums to their rows only when they store them in
// shared memory.
//
// Barriers: those of direct/kernel.cuh.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cluster.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/direct/kernel.cuh"
#include "arch/sm90/direct/operands.cuh"

#include <cstdint>

namespace hg::sm90 {

// Sums of a lane: columns of B by the eight rows of its vectors.
template <DirectConfig C>
using GemvSums = float[C.tile_n][8];

// Vectors that a lane loads at a time, each from another column of A.
constexpr int loads_in_flight = direct_vectors;

// The group of lanes that reads a column of A.
template <DirectConfig C>
struct GemvGroup {
    static constexpr int lanes = C.tile_m / 8, count = direct_sharers(C, Major::MN);
    int index, lane;  // group in the CTA, lane in the group

    __device__ static GemvGroup here()
    {
        const auto thread = static_cast<int>(threadIdx.x);
        return {thread / lanes, thread % lanes};
    }
};

// The columns of A of a group as a lane reads them: its vectors at `at`, at + pitch, ..., for the K's k, k
// + k_step, ... before k_end.
template <DirectConfig C>
struct GemvA {
    static constexpr int k_step = GemvGroup<C>::count;
    static_assert(k_step == direct_step(C, Major::MN), "slices are counted in steps of as many K's");
    uintptr_t at, begin, end;  // A lies in bytes begin ... end - 1
    int64_t pitch;
    int32_t k, k_end;
    int shift;  // elements by which a lane's vectors begin before row 8 * lane of the tile

    __device__ GemvA(const DirectParams& p, const Tile& tile, int32_t slice, const GemvGroup<C>& group)
    {
        const uint16_t* const ptr = first_element(p.a, tile.batch);
        const int32_t row = tile.m * p.width;
        k = p.slice_start[slice] * k_step + group.index;
        k_end = min(p.slice_start[slice + 1] * k_step, p.k);
        begin = reinterpret_cast<uintptr_t>(ptr);
        end = reinterpret_cast<uintptr_t>(ptr + (p.k - 1) * p.a.k_stride + p.a.rows);
        pitch = k_step * 2 * p.a.k_stride;
        const auto first = reinterpret_cast<uintptr_t>(ptr + k * p.a.k_stride + row);
        shift = static_cast<int>(first % 16 / 2);
        // Lanes whose rows are past the end read the last vector that exists.
        at = first - 2 * shift + 16 * min(group.lane, (p.a.rows - 1 - row + shift) / 8);
    }

    __device__ bool has(int i) const { return k + i * k_step < k_end; }

    // Loads the next vectors; those past k_end become zeros.
    __device__ void load(uint4 (&v)[loads_in_flight]) const
    {
        const int count = max(0, min(loads_in_flight, (k_end - k + k_step - 1) / k_step));
        // Only A's first and last vector may lie partly outside of it.
        const bool gathers_first = count > 0 && at < begin;
        const bool gathers_last = count > 0 && at + (count - 1) * pitch + 16 > end;
        if (count == loads_in_flight && !gathers_first && !gathers_last) [[likely]] {
#pragma unroll
            for (int i = 0; i < loads_in_flight; ++i)
                v[i] = load_vector(at + i * pitch);
            return;
        }
        const int stop = gathers_last ? count - 1 : count;
#pragma unroll
        for (int i = 0; i < loads_in_flight; ++i) {
            v[i] = make_uint4(0, 0, 0, 0);
            if (i < stop && !(i == 0 && gathers_first))
                v[i] = load_vector(at + i * pitch);
        }
        if (gathers_first)
            v[0] = gather_within(at, begin, end);
        if (gathers_last)
            put_vector(v, count - 1, gather_within(at + (count - 1) * pitch, begin, end));
    }

    __device__ void prefetch() const
    {
#pragma unroll
        for (int i = 0; i < loads_in_flight; ++i)
            if (has(i))
                ptx::prefetch_l2(reinterpret_cast<const void*>(at + i * pitch));
    }

    __device__ void advance()
    {
        k += loads_in_flight * k_step;
        at += loads_in_flight * pitch;
    }
};

// Elements of B for the same K's: lanes 0 to 7 of a group load the next eight K's of column 0, lanes 8 to
// 15 those of column 1, and so on; where a group has too few lanes, each loads another column as well.
template <DirectConfig C, Type T>
struct GemvB {
    static constexpr int columns_at_once = GemvGroup<C>::lanes / loads_in_flight;
    static constexpr int values = (C.tile_n + columns_at_once - 1) / columns_at_once;
    const uint16_t* at[values];
    int64_t step;

    __device__ GemvB(const DirectParams& p, const Tile& tile, int32_t k, int lane)
    {
        const int32_t own_k = k + lane % loads_in_flight * GemvA<C>::k_step;
        const uint16_t* const b = first_element(p.b, tile.batch) + own_k * p.b.k_stride;
#pragma unroll
        for (int i = 0; i < values; ++i) {
            const int32_t row = tile.n * C.tile_n + i * columns_at_once + lane / loads_in_flight;
            at[i] = b + min(row, p.b.rows - 1) * p.b.row_stride;
        }
        step = loads_in_flight * GemvA<C>::k_step * p.b.k_stride;
    }

    __device__ void load(float (&v)[values], bool exist) const
    {
#pragma unroll
        for (int i = 0; i < values; ++i)
            v[i] = exist ? to_float(*at[i], T) : 0.0f;
    }

    // The element of column j and K number i, from the lane of the group that has loaded it.
    __device__ static float broadcast(const float (&v)[values], int j, int i)
    {
        return __shfl_sync(0xffffffff, v[j / columns_at_once], loads_in_flight * (j % columns_at_once) + i,
                           GemvGroup<C>::lanes);
    }

    __device__ void advance()
    {
#pragma unroll
        for (const uint16_t*& next : at)
            next += step;
    }
};

template <DirectConfig C, Type T>
__device__ inline void multiply_gemv(GemvSums<C>& sums, const DirectParams& p, GemvA<C> a, const Tile& tile,
                                     int lane)
{
    using B = GemvB<C, T>;
    B b(p, tile, a.k, lane);
    // All groups of a warp iterate as long as one of them has a K left: they shuffle together.
    const int32_t first = a.k - static_cast<int32_t>(threadIdx.x % 32) / GemvGroup<C>::lanes;
#pragma unroll 1
    for (int32_t k = first; k < a.k_end; k += loads_in_flight * GemvA<C>::k_step) {
        uint4 vectors[loads_in_flight];
        a.load(vectors);
        float b_floats[B::values];
        b.load(b_floats, a.has(lane % loads_in_flight));
#pragma unroll
        for (int i = 0; i < loads_in_flight; ++i) {
            float a_floats[8];
            to_floats<T>(a_floats, vectors[i]);
#pragma unroll
            for (int j = 0; j < C.tile_n; ++j) {
                const float factor = B::broadcast(b_floats, j, i);
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    sums[j][e] = fmaf(a_floats[e], factor, sums[j][e]);
            }
        }
        a.advance();
        b.advance();
    }
}

// The place of a row's sum. The padding keeps what the lanes of a warp store at once in different banks.
__device__ inline int padded_index(int row) { return row + row / 8; }

template <DirectConfig C>
__device__ inline void stage_gemv_sums(float (*to)[direct_pitch(C)], const GemvSums<C>& sums, int shift,
                                       int lane)
{
#pragma unroll
    for (int j = 0; j < C.tile_n; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (const int row = 8 * lane + e - shift; row >= 0)
                to[j][padded_index(row)] = sums[j][e];
}

// Reduces row `row`: the groups in order, then the slices. Returns false in all slices but the first, which
// send their sums to it. Past the tile's last row the result is meaningless.
template <DirectConfig C>
__device__ inline bool reduce_gemv(float (&sum)[C.tile_n], const DirectParams& p, DirectSmem<C>& smem,
                                   int slice, int row)
{
    const int place = padded_index(min(row, p.width - 1));  // no branch: the loads of all groups overlap
#pragma unroll
    for (int j = 0; j < C.tile_n; ++j) {
        sum[j] = smem.sums[0][j][place];
#pragma unroll
        for (int group = 1; group < GemvGroup<C>::count; ++group)
            sum[j] += smem.sums[group][j][place];
    }
    if (slice > 0) {
        const uint32_t partials_full = ptx::map_shared(ptx::shared_address(&smem.partials_full), 0);
#pragma unroll
        for (int j = 0; j < C.tile_n; ++j)
            ptx::store_async_u32(ptx::map_shared(ptx::shared_address(&smem.incoming[slice - 1][j][row]), 0),
                                 __float_as_uint(sum[j]), partials_full);
        return false;
    }
    if (p.split.value > 1)
        ptx::mbarrier_wait_parity(ptx::shared_address(&smem.partials_full), 0);
#pragma unroll 1
    for (int other = 1; other < p.split.value; ++other)
#pragma unroll
        for (int j = 0; j < C.tile_n; ++j)
            sum[j] += smem.incoming[other - 1][j][row];
    return true;
}

// A thread stores its row of A times the columns of B: in D a row or, with swap_ab, a column.
template <DirectConfig C>
__device__ inline void store_gemv(const DirectParams& p, const Scalars& s, const float (&sum)[C.tile_n],
                                  const Tile& tile, int row)
{
    const int64_t m = int64_t{tile.m} * p.width + row;
    if (row >= p.width || m >= p.a.rows)
        return;
    const OutputBases bases(p.output, s, tile.batch);
#pragma unroll
    for (int j = 0; j < C.tile_n; ++j) {
        const int64_t n = int64_t{tile.n} * C.tile_n + j, row_of_d = p.swap_ab ? n : m,
                      column = p.swap_ab ? m : n;
        if (n < p.b.rows)
            finish_element(p.output, s, bases, row_of_d, column, sum[j]);
    }
}

template <DirectConfig C, Type T>
__device__ inline void run_gemv(const DirectParams& p, DirectSmem<C>& smem)
{
    prepare_direct<C>(p, smem);
    const auto group = GemvGroup<C>::here();
    const auto [tile, slice] = direct_part(p);
    if (p.prefetches)
        GemvA<C>(p, tile, slice, group).prefetch();
    ptx::wait_for_earlier_grids();
    if (p.pdl_early)
        ptx::launch_dependents();
    const Scalars scalars = load_scalars(p.output);
    GemvSums<C> sums = {};
    int shift = 0;
    if (scalars.alpha != 0.0f) {
        const GemvA<C> a(p, tile, slice, group);
        shift = a.shift;
        multiply_gemv<C, T>(sums, p, a, tile, group.lane);
    }
    ptx::launch_dependents();
    stage_gemv_sums<C>(smem.sums[group.index], sums, shift, group.lane);
    __syncthreads();
    if (p.split.value > 1)
        ptx::cluster_wait();
    float sum[C.tile_n];
    const auto row = static_cast<int>(threadIdx.x);
    if (row >= C.tile_m)
        return;
    if (reduce_gemv<C>(sum, p, smem, slice, row))
        store_gemv<C>(p, scalars, sum, tile, row);
}

}  // namespace hg::sm90
