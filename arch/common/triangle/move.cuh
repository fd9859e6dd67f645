// Moves a triangle: from the workspace to D, or from one half of D to the other, transposed. Whole tiles
// beside the diagonal are moved by vectors of 16 bytes, if the matrices are aligned; all others by
// elements.
//
// All elements of a tile are loaded before one is stored.
//
// Barriers: __syncthreads() before and after threads read what others have put into shared memory.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/triangle/config.hpp"

#include <cstdint>

namespace hg {

// A tile of the triangle i <= j, by its place in units of tiles; false if the chunk has none.
__device__ inline bool find_triangle_tile(const TriangleParams& p, int32_t chunk, int32_t& row,
                                          int32_t& column)
{
    const int32_t pair = p.chunks_of_pair.quotient(chunk);
    const int32_t place = chunk - pair * p.chunks_of_pair.value;
    const bool first = place < p.tiles - pair;
    row = first ? pair : p.tiles - 1 - pair;
    column = first ? pair + place : place - 1;
    return first || row > pair;
}

// The tile at `from`, whose first element is (i0, j0), by elements, to the tile at `to`. Thread t has
// column t % tile of some rows of both.
template <typename Element>
__device__ inline void move_elements(const TriangleParams& p, const Element* from, Element* to, int32_t i0,
                                     int32_t j0, TriangleTile<Element>& shared)
{
    constexpr int rows_at_once = triangle_threads / triangle_tile;
    constexpr int steps = triangle_tile / rows_at_once;
    const int x = static_cast<int>(threadIdx.x) % triangle_tile;
    const int y = static_cast<int>(threadIdx.x) / triangle_tile;
    const int32_t least = p.mirrored ? 1 : 0;  // distance from the diagonal
    const auto is_moved = [&](int row, int column) {
        const int32_t i = i0 + row, j = j0 + column;
        return (max(i, j) < p.n) & ((p.upper ? j - i : i - j) >= least);
    };
    __syncthreads();
    from += y * p.from_ld + x;
#pragma unroll 8
    for (int step = 0; step < steps; ++step, from += rows_at_once * p.from_ld) {
        const int row = y + step * rows_at_once;
        shared[row][x] = is_moved(row, x) ? *from : Element{0};
    }
    __syncthreads();
    to += y * p.to_ld + x;
#pragma unroll 8
    for (int step = 0; step < steps; ++step, to += rows_at_once * p.to_ld) {
        const int row = y + step * rows_at_once;
        const int i = p.mirrored ? x : row, j = p.mirrored ? row : x;
        if (is_moved(i, j))
            *to = shared[i][j];
    }
}

// How threads share a tile that is moved by vectors: eight neighbours have a line of a row, 128 bytes. A
// unit of a thread is a vector of one row, or of as many rows as have their elements of a column in one
// word.
//
// In shared memory the tile is transposed, and consists of such words. Of each eight vectors of a
// transposed row, the order depends on the column, so that 32 threads reach 32 banks, both when they put a
// word each and when eight at a time get a vector each.
template <typename Element>
struct TriangleVectors {
    static constexpr int elements = 16 / sizeof(Element);
    static constexpr int rows = 4 / sizeof(Element);  // of a word
    static constexpr int lines = triangle_tile / (8 * elements);
    static constexpr int words = triangle_tile / rows;  // of a transposed row
    static constexpr int threads_down = triangle_threads / 8;
    static constexpr int units = words / threads_down * lines;
    static_assert(threads_down % 32 == 0);  // down() does not change the order of eight vectors
    static_assert(sizeof(uint32_t) * triangle_tile * words <= sizeof(TriangleTile<Element>));

    // From the first unit of a thread to another one: rows of words or vectors, and elements of a row.
    static constexpr __device__ int down(int unit) { return unit / lines * threads_down; }
    static constexpr __device__ int along(int unit) { return unit % lines * 8 * elements; }

    // The index of vector `vector` of transposed row `column`.
    static __device__ int place(int column, int vector)
    {
        return column * (words / 4) + (vector ^ column / elements % 8);
    }
};

template <typename Element>
__device__ inline uint4 load_vector(const Element* from)
{
    return *reinterpret_cast<const uint4*>(from);
}

template <typename Element>
__device__ inline void store_vector(Element* to, const uint4& vector)
{
    ptx::store_global_v4(reinterpret_cast<uint4*>(to), vector);
}

// Word k has element k of each vector, the first vector's in its low bits.
__device__ inline void transpose_vectors(const uint4 (&v)[1], uint32_t (&words)[4])
{
    words[0] = v[0].x, words[1] = v[0].y, words[2] = v[0].z, words[3] = v[0].w;
}

__device__ inline void transpose_vectors(const uint4 (&v)[2], uint32_t (&words)[8])
{
    const uint32_t first[] = {v[0].x, v[0].y, v[0].z, v[0].w}, second[] = {v[1].x, v[1].y, v[1].z, v[1].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        words[2 * i] = __byte_perm(first[i], second[i], 0x5410);
        words[2 * i + 1] = __byte_perm(first[i], second[i], 0x7632);
    }
}

// The whole tile at `from`, of which no element is on the diagonal, by vectors, to the tile at `to`.
template <typename Element>
__device__ inline void move_vectors(const TriangleParams& p, const Element* from, Element* to,
                                    uint4* shared)
{
    using V = TriangleVectors<Element>;
    const int x = static_cast<int>(threadIdx.x) % 8, y = static_cast<int>(threadIdx.x) / 8;
    uint4 moved[V::units][V::rows];
    from += y * V::rows * p.from_ld + x * V::elements;
#pragma unroll
    for (int unit = 0; unit < V::units; ++unit)
#pragma unroll
        for (int row = 0; row < V::rows; ++row)
            moved[unit][row] =
                load_vector(from + (V::down(unit) * V::rows + row) * p.from_ld + V::along(unit));
    if (!p.mirrored) {
        to += y * V::rows * p.to_ld + x * V::elements;
#pragma unroll
        for (int unit = 0; unit < V::units; ++unit)
#pragma unroll
            for (int row = 0; row < V::rows; ++row)
                store_vector(to + (V::down(unit) * V::rows + row) * p.to_ld + V::along(unit),
                             moved[unit][row]);
        return;
    }
    __syncthreads();
    uint32_t* const put = reinterpret_cast<uint32_t*>(shared + V::place(x * V::elements, y / 4)) + y % 4;
#pragma unroll
    for (int unit = 0; unit < V::units; ++unit) {
        uint32_t words[V::elements];
        transpose_vectors(moved[unit], words);
#pragma unroll
        for (int i = 0; i < V::elements; ++i)
            put[(V::along(unit) + i) * V::words + V::down(unit)] = words[i];
    }
    __syncthreads();
    to += y * p.to_ld + x * V::elements;
#pragma unroll
    for (int unit = 0; unit < V::units * V::rows; ++unit)
        store_vector(to + V::down(unit) * p.to_ld + V::along(unit),
                     shared[V::place(y + V::down(unit), x + 8 * (unit % V::lines))]);
}

template <typename Element>
__device__ inline void move_triangle_of(const TriangleParams& p, void* shared)
{
#pragma unroll 1
    for (auto chunk = static_cast<int32_t>(blockIdx.x); chunk < p.chunks;
         chunk += static_cast<int32_t>(gridDim.x)) {
        const int32_t z = p.chunks_of_problem.quotient(chunk);
        int32_t row, column;
        if (!find_triangle_tile(p, chunk - z * p.chunks_of_problem.value, row, column))
            continue;
        const int32_t i0 = (p.upper ? row : column) * triangle_tile;
        const int32_t j0 = (p.upper ? column : row) * triangle_tile;
        constexpr int64_t bytes = sizeof(Element);
        const void* const from_base = problem_base(p.from, p.from_array, z, p.from_stride * bytes);
        void* const to_base = problem_base(p.to, p.to_array, z, p.to_stride * bytes);
        const Element* const from = static_cast<const Element*>(from_base) + i0 * p.from_ld + j0;
        Element* const to =
            static_cast<Element*>(to_base) + (p.mirrored ? j0 * p.to_ld + i0 : i0 * p.to_ld + j0);
        const bool is_whole = max(i0, j0) + triangle_tile <= p.n;
        if (p.vectors && is_whole && i0 != j0)
            move_vectors(p, from, to, static_cast<uint4*>(shared));
        else
            move_elements(p, from, to, i0, j0, *static_cast<TriangleTile<Element>*>(shared));
    }
}

// The whole kernel, with room for a tile in shared memory: CTA i moves chunks i, i + CTAs, ...
__device__ inline void move_triangle(const TriangleParams& p, void* shared)
{
    if (p.words)
        move_triangle_of<uint32_t>(p, shared);
    else
        move_triangle_of<uint16_t>(p, shared);
}

}  // namespace hg
