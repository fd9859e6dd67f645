// Products of up to four rows with an x that is contiguous along its rows, however it is aligned: lanes
// multiply vectors of eight rows of x by fmaf(), so that a warp reads up to 512 bytes of a line of x, a k,
// at a time.
//
// A part of a warp, as many lanes as a tile has vectors, reads a line; the parts of a CTA take lines in
// turn. Those of one part are then a multiple of eight line strides apart, whole vectors, so that its tile
// begins equally far into a vector in each: vectors are read where they are aligned in memory, and sums
// moved to their places when the parts leave them.
//
// Barriers: those of direct.cuh.
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

// Sums of a lane: of y by the eight rows of its vectors.
template <DirectConfig C>
using GemvSums = float[C.tile_n][8];

// Vectors that a lane loads at a time, one of a line each.
constexpr int loads_in_flight = direct_vectors;

// The part of a warp that a lane is in.
template <DirectConfig C>
struct GemvPart {
    static constexpr int lanes = C.tile_m / 8, count = direct_sharers(C, Major::MN);
    int index, lane;  // of the parts of the CTA, of the lanes of the part

    __device__ static GemvPart here()
    {
        const auto thread = static_cast<int>(threadIdx.x);
        return {thread / lanes, thread % lanes};
    }
};

// The lines of a part as a lane reads them: the vectors at `at`, `at` + pitch, ..., one for each of the k's
// `line`, `line` + apart, ... before `last`.
template <DirectConfig C>
struct GemvA {
    static constexpr int apart = GemvPart<C>::count;
    static_assert(apart == direct_step(C, Major::MN), "slices are counted in as many lines");
    uintptr_t at, begin, end;  // the operand's bytes are begin ... end - 1
    int64_t pitch;
    int32_t line, last;
    int shift;  // elements by which the vectors begin before the tile's row 8 lane

    __device__ GemvA(const DirectParams& p, const Tile& tile, int32_t slice, const GemvPart<C>& part)
    {
        const uint16_t* const ptr = first_element(p.a, tile.batch);
        const int32_t row = tile.m * p.width;
        line = p.slice_start[slice] * apart + part.index;
        last = min(p.slice_start[slice + 1] * apart, p.k);
        begin = reinterpret_cast<uintptr_t>(ptr);
        end = reinterpret_cast<uintptr_t>(ptr + (p.k - 1) * p.a.k_stride + p.a.rows);
        pitch = apart * 2 * p.a.k_stride;
        const auto first = reinterpret_cast<uintptr_t>(ptr + line * p.a.k_stride + row);
        shift = static_cast<int>(first % 16 / 2);
        // Lanes without a row that exists read what others do.
        at = first - 2 * shift + 16 * min(part.lane, (p.a.rows - 1 - row + shift) / 8);
    }

    __device__ bool has(int i) const { return line + i * apart < last; }

    // One of which a part is the operand's: its other elements are zeros.
    __device__ uint4 gather(int i) const
    {
        const uintptr_t vector = at + i * pitch;
        uint64_t halves[2] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (const uintptr_t element = vector + 2 * e; element >= begin && element < end)
                halves[e / 4] |= uint64_t{*reinterpret_cast<const uint16_t*>(element)} << 16 * (e % 4);
        return make_uint4(static_cast<uint32_t>(halves[0]), static_cast<uint32_t>(halves[0] >> 32),
                          static_cast<uint32_t>(halves[1]), static_cast<uint32_t>(halves[1] >> 32));
    }

    __device__ static void put(uint4 (&v)[loads_in_flight], int place, const uint4& vector)
    {
#pragma unroll
        for (int i = 0; i < loads_in_flight; ++i)
            if (i == place)
                v[i] = vector;
    }

    // The next vectors; zeros for what does not exist.
    __device__ void load(uint4 (&v)[loads_in_flight]) const
    {
        const int count = max(0, min(loads_in_flight, (last - line + apart - 1) / apart));
        // Only the operand's first and last vector may be another's in part.
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
            v[0] = gather(0);
        if (gathers_last)
            put(v, count - 1, gather(count - 1));
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
        line += loads_in_flight * apart;
        at += loads_in_flight * pitch;
    }
};

// y for the same lines: a part's lanes 0 to 7 have the next eight of row 0, 8 to 15 those of row 1, and so
// on; where they are too few, each lane has another row as well.
template <DirectConfig C, Type T>
struct GemvB {
    static constexpr int side_by_side = GemvPart<C>::lanes / loads_in_flight;
    static constexpr int values = (C.tile_n + side_by_side - 1) / side_by_side;
    const uint16_t* at[values];
    int64_t step;

    __device__ GemvB(const DirectParams& p, const Tile& tile, int32_t line, int lane)
    {
        const int32_t k = line + lane % loads_in_flight * GemvA<C>::apart;
        const uint16_t* const of_k = first_element(p.b, tile.batch) + k * p.b.k_stride;
#pragma unroll
        for (int i = 0; i < values; ++i) {
            const int32_t row = tile.n * C.tile_n + i * side_by_side + lane / loads_in_flight;
            at[i] = of_k + min(row, p.b.rows - 1) * p.b.row_stride;
        }
        step = loads_in_flight * GemvA<C>::apart * p.b.k_stride;
    }

    __device__ void load(float (&v)[values], bool exist) const
    {
#pragma unroll
        for (int i = 0; i < values; ++i)
            v[i] = exist ? to_float(*at[i], T) : 0.0f;
    }

    // That of row j and line i, from the lane of this part that has it.
    __device__ static float of(const float (&v)[values], int j, int i)
    {
        return __shfl_sync(0xffffffff, v[j / side_by_side], loads_in_flight * (j % side_by_side) + i,
                           GemvPart<C>::lanes);
    }

    __device__ void advance()
    {
#pragma unroll
        for (const uint16_t*& of_row : at)
            of_row += step;
    }
};

template <DirectConfig C, Type T>
__device__ inline void multiply_gemv(GemvSums<C>& sums, const DirectParams& p, GemvA<C> a, const Tile& tile,
                                     int lane)
{
    using B = GemvB<C, T>;
    B b(p, tile, a.line, lane);
    // All parts of a warp go on as long as one of them has a line.
    const int32_t first = a.line - static_cast<int32_t>(threadIdx.x % 32) / GemvPart<C>::lanes;
#pragma unroll 1
    for (int32_t line = first; line < a.last; line += loads_in_flight * GemvA<C>::apart) {
        uint4 vectors[loads_in_flight];
        a.load(vectors);
        float of_b[B::values];
        b.load(of_b, a.has(lane % loads_in_flight));
#pragma unroll
        for (int i = 0; i < loads_in_flight; ++i) {
            float of_a[8];
            to_floats<T>(of_a, vectors[i]);
#pragma unroll
            for (int j = 0; j < C.tile_n; ++j) {
                const float factor = B::of(of_b, j, i);
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    sums[j][e] = fmaf(of_a[e], factor, sums[j][e]);
            }
        }
        a.advance();
        b.advance();
    }
}

// Where the sum of a row lies. The padding keeps what the lanes of a warp store at once in different banks.
__device__ inline int place_of(int row) { return row + row / 8; }

template <DirectConfig C>
__device__ inline void stage_gemv_sums(float (*to)[direct_pitch(C)], const GemvSums<C>& sums, int shift,
                                       int lane)
{
#pragma unroll
    for (int j = 0; j < C.tile_n; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (const int row = 8 * lane + e - shift; row >= 0)
                to[j][place_of(row)] = sums[j][e];
}

// Of row `row`, all that share k: the parts in order, then the slices; of any where the tile has no such
// row. False in slices but the first, which send theirs to it.
template <DirectConfig C>
__device__ inline bool reduce_gemv(float (&sum)[C.tile_n], const DirectParams& p, DirectSmem<C>& smem,
                                   int slice, int row)
{
    const int place = place_of(min(row, p.width - 1));  // no branch: each part's would be waited for
#pragma unroll
    for (int j = 0; j < C.tile_n; ++j) {
        sum[j] = smem.sums[0][j][place];
#pragma unroll
        for (int part = 1; part < GemvPart<C>::count; ++part)
            sum[j] += smem.sums[part][j][place];
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

// A thread stores its row of x, in the rows or columns of D that y has.
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
    const auto part = GemvPart<C>::here();
    const auto [tile, slice] = direct_part(p);
    if (p.prefetches)
        GemvA<C>(p, tile, slice, part).prefetch();
    ptx::wait_for_earlier_grids();
    if (p.early)
        ptx::launch_dependents();
    const Scalars scalars = load_scalars(p.output);
    GemvSums<C> sums = {};
    int shift = 0;
    if (scalars.alpha != 0.0f) {
        const GemvA<C> a(p, tile, slice, part);
        shift = a.shift;
        multiply_gemv<C, T>(sums, p, a, tile, part.lane);
    }
    ptx::launch_dependents();
    stage_gemv_sums<C>(smem.sums[part.index], sums, shift, part.lane);
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
