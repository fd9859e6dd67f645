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

#include "arch/sm90/direct.cuh"

namespace hg::sm90 {

// Sums of a lane: of y by the eight rows of its vectors.
template <DirectConfig C>
using LineSums = float[C.y][8];

// Vectors that a lane loads at a time, one of a line each.
constexpr int lines_at_once = direct_vectors;

// The part of a warp that a lane is in.
template <DirectConfig C>
struct LinePart {
    static constexpr int lanes = C.x / 8, count = direct_sharers(C, Major::MN);
    int index, lane;  // of the parts of the CTA, of the lanes of the part

    __device__ static LinePart here()
    {
        const auto thread = static_cast<int>(threadIdx.x);
        return {thread / lanes, thread % lanes};
    }
};

// The lines of a part as a lane reads them: the vectors at `at`, `at` + pitch, ..., one for each of the k's
// `line`, `line` + apart, ... before `last`.
template <DirectConfig C>
struct LinesOfX {
    static constexpr int apart = LinePart<C>::count;
    static_assert(apart == direct_step(C, Major::MN), "slices are counted in as many lines");
    uintptr_t at, begin, end;  // the operand's bytes are begin ... end - 1
    int64_t pitch;
    int32_t line, last;
    int shift;  // elements by which the vectors begin before the tile's row 8 lane

    __device__ LinesOfX(const DirectParams& p, const Tile& tile, int32_t slice, const LinePart<C>& part)
    {
        const uint16_t* const ptr = first_element(p.x, tile.batch);
        const int32_t row = tile.m * p.width;
        line = p.slice_start[slice] * apart + part.index;
        last = min(p.slice_start[slice + 1] * apart, p.k);
        begin = reinterpret_cast<uintptr_t>(ptr);
        end = reinterpret_cast<uintptr_t>(ptr + (p.k - 1) * p.x.k_stride + p.x.rows);
        pitch = apart * 2 * p.x.k_stride;
        const auto first = reinterpret_cast<uintptr_t>(ptr + line * p.x.k_stride + row);
        shift = static_cast<int>(first % 16 / 2);
        // Lanes without a row that exists read what others do.
        at = first - 2 * shift + 16 * min(part.lane, (p.x.rows - 1 - row + shift) / 8);
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

    __device__ static void put(uint4 (&v)[lines_at_once], int place, const uint4& vector)
    {
#pragma unroll
        for (int i = 0; i < lines_at_once; ++i)
            if (i == place)
                v[i] = vector;
    }

    // The next vectors; zeros for what does not exist.
    __device__ void load(uint4 (&v)[lines_at_once]) const
    {
        const int count = max(0, min(lines_at_once, (last - line + apart - 1) / apart));
        // Only the operand's first and last vector may be another's in part.
        const bool gathers_first = count > 0 && at < begin;
        const bool gathers_last = count > 0 && at + (count - 1) * pitch + 16 > end;
        if (count == lines_at_once && !gathers_first && !gathers_last) [[likely]] {
#pragma unroll
            for (int i = 0; i < lines_at_once; ++i)
                v[i] = load_vector(at + i * pitch);
            return;
        }
        const int stop = gathers_last ? count - 1 : count;
#pragma unroll
        for (int i = 0; i < lines_at_once; ++i) {
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
        for (int i = 0; i < lines_at_once; ++i)
            if (has(i))
                ptx::prefetch_l2(reinterpret_cast<const void*>(at + i * pitch));
    }

    __device__ void advance()
    {
        line += lines_at_once * apart;
        at += lines_at_once * pitch;
    }
};

// y for the same lines: a part's lanes 0 to 7 have the next eight of row 0, 8 to 15 those of row 1, and so
// on; where they are too few, each lane has another row as well.
template <DirectConfig C, Type T>
struct LinesOfY {
    static constexpr int side_by_side = LinePart<C>::lanes / lines_at_once;
    static constexpr int values = (C.y + side_by_side - 1) / side_by_side;
    const uint16_t* at[values];
    int64_t step;

    __device__ LinesOfY(const DirectParams& p, const Tile& tile, int32_t line, int lane)
    {
        const int32_t k = line + lane % lines_at_once * LinesOfX<C>::apart;
        const uint16_t* const of_k = first_element(p.y, tile.batch) + k * p.y.k_stride;
#pragma unroll
        for (int i = 0; i < values; ++i) {
            const int32_t row = tile.n * C.y + i * side_by_side + lane / lines_at_once;
            at[i] = of_k + min(row, p.y.rows - 1) * p.y.row_stride;
        }
        step = lines_at_once * LinesOfX<C>::apart * p.y.k_stride;
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
        return __shfl_sync(0xffffffff, v[j / side_by_side], lines_at_once * (j % side_by_side) + i,
                           LinePart<C>::lanes);
    }

    __device__ void advance()
    {
#pragma unroll
        for (const uint16_t*& of_row : at)
            of_row += step;
    }
};

template <DirectConfig C, Type T>
__device__ inline void multiply_lines(LineSums<C>& sums, const DirectParams& p, LinesOfX<C> x,
                                      const Tile& tile, int lane)
{
    using Y = LinesOfY<C, T>;
    Y y(p, tile, x.line, lane);
    // All parts of a warp go on as long as one of them has a line.
    const int32_t first = x.line - static_cast<int32_t>(threadIdx.x % 32) / LinePart<C>::lanes;
#pragma unroll 1
    for (int32_t line = first; line < x.last; line += lines_at_once * LinesOfX<C>::apart) {
        uint4 vectors[lines_at_once];
        x.load(vectors);
        float of_y[Y::values];
        y.load(of_y, x.has(lane % lines_at_once));
#pragma unroll
        for (int i = 0; i < lines_at_once; ++i) {
            float of_x[8];
            to_floats<T>(of_x, vectors[i]);
#pragma unroll
            for (int j = 0; j < C.y; ++j) {
                const float factor = Y::of(of_y, j, i);
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    sums[j][e] = fmaf(of_x[e], factor, sums[j][e]);
            }
        }
        x.advance();
        y.advance();
    }
}

// Where the sum of a row lies. The padding keeps what the lanes of a warp store at once in different banks.
__device__ inline int place_of(int row) { return row + row / 8; }

template <DirectConfig C>
__device__ inline void leave_lines(float (*to)[direct_pitch(C)], const LineSums<C>& sums, int shift,
                                   int lane)
{
#pragma unroll
    for (int j = 0; j < C.y; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (const int row = 8 * lane + e - shift; row >= 0)
                to[j][place_of(row)] = sums[j][e];
}

// Of row `row`, all that share k: the parts in order, then the slices; of any where the tile has no such
// row. False in slices but the first, which send theirs to it.
template <DirectConfig C>
__device__ inline bool add_lines(float (&sum)[C.y], const DirectParams& p, DirectSmem<C>& smem, int slice,
                                 int row)
{
    const int place = place_of(min(row, p.width - 1));  // no branch: each part's would be waited for
#pragma unroll
    for (int j = 0; j < C.y; ++j) {
        sum[j] = smem.sums[0][j][place];
#pragma unroll
        for (int part = 1; part < LinePart<C>::count; ++part)
            sum[j] += smem.sums[part][j][place];
    }
    if (slice > 0) {
        const uint32_t arrived = ptx::map_shared(ptx::shared_address(&smem.arrived), 0);
#pragma unroll
        for (int j = 0; j < C.y; ++j)
            ptx::store_async_u32(ptx::map_shared(ptx::shared_address(&smem.incoming[slice - 1][j][row]), 0),
                                 __float_as_uint(sum[j]), arrived);
        return false;
    }
    if (p.split.value > 1)
        ptx::mbarrier_wait_parity(ptx::shared_address(&smem.arrived), 0);
#pragma unroll 1
    for (int other = 1; other < p.split.value; ++other)
#pragma unroll
        for (int j = 0; j < C.y; ++j)
            sum[j] += smem.incoming[other - 1][j][row];
    return true;
}

// A thread stores its row of x, in the rows or columns of D that y has.
template <DirectConfig C>
__device__ inline void store_lines(const DirectParams& p, const Scalars& s, const float (&sum)[C.y],
                                   const Tile& tile, int row)
{
    const int64_t x = int64_t{tile.m} * p.width + row;
    if (row >= p.width || x >= p.x.rows)
        return;
    const OutputBases bases(p.output, s, tile.batch);
#pragma unroll
    for (int j = 0; j < C.y; ++j) {
        const int64_t y = int64_t{tile.n} * C.y + j, row_of_d = p.swapped ? y : x,
                      column = p.swapped ? x : y;
        if (y < p.y.rows)
            finish_element(p.output, s, bases, row_of_d, column, sum[j]);
    }
}

template <DirectConfig C, Type T>
__device__ inline void run_direct_lines(const DirectParams& p, DirectSmem<C>& smem)
{
    prepare_direct<C>(p, smem);
    const auto part = LinePart<C>::here();
    const auto [tile, slice] = direct_part(p);
    if (p.prefetches)
        LinesOfX<C>(p, tile, slice, part).prefetch();
    ptx::wait_for_earlier_grids();
    if (p.early)
        ptx::launch_dependents();
    const Scalars scalars = load_scalars(p.output);
    LineSums<C> sums = {};
    int shift = 0;
    if (scalars.alpha != 0.0f) {
        const LinesOfX<C> x(p, tile, slice, part);
        shift = x.shift;
        multiply_lines<C, T>(sums, p, x, tile, part.lane);
    }
    ptx::launch_dependents();
    leave_lines<C>(smem.sums[part.index], sums, shift, part.lane);
    __syncthreads();
    if (p.split.value > 1)
        ptx::cluster_wait();
    float sum[C.y];
    const auto row = static_cast<int>(threadIdx.x);
    if (row >= C.x)
        return;
    if (add_lines<C>(sum, p, smem, slice, row))
        store_lines<C>(p, scalars, sum, tile, row);
}

}  // namespace hg::sm90
