// Moves a triangle: from the workspace to D, or from one half of D to the other, transposed.
//
// Barriers: __syncthreads() before and after threads read what others have put into shared memory.
#pragma once

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

// The tile whose first element is (i0, j0). Thread t has column t % tile of some of its rows; where the
// tile is mirrored it writes rows of the transposed one. All elements are loaded before one is stored, so
// that a thread waits for memory once.
template <typename Element>
__device__ inline void move_triangle_tile(const TriangleParams& p, const Element* from, Element* to,
                                          int32_t i0, int32_t j0, TriangleTile<Element>& shared)
{
    constexpr int rows_at_once = triangle_threads / triangle_tile;
    constexpr int steps = triangle_tile / rows_at_once;
    const int x = static_cast<int>(threadIdx.x) % triangle_tile;
    const int y = static_cast<int>(threadIdx.x) / triangle_tile;
    const auto is_moved = [&](int32_t i, int32_t j) {
        return i < p.n && j < p.n && (p.upper ? i <= j : j <= i) && !(p.mirrored && i == j);
    };
    Element moved[steps];
#pragma unroll
    for (int step = 0; step < steps; ++step) {
        const int32_t i = i0 + y + step * rows_at_once, j = j0 + x;
        moved[step] = is_moved(i, j) ? from[i * p.from_ld + j] : Element{0};
    }
    if (!p.mirrored) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            const int32_t i = i0 + y + step * rows_at_once, j = j0 + x;
            if (is_moved(i, j))
                to[i * p.to_ld + j] = moved[step];
        }
        return;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < steps; ++step)
        shared[y + step * rows_at_once][x] = moved[step];
    __syncthreads();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
        const int32_t i = i0 + x, j = j0 + y + step * rows_at_once;
        if (is_moved(i, j))
            to[j * p.to_ld + i] = shared[x][y + step * rows_at_once];
    }
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
        move_triangle_tile(p, static_cast<const Element*>(p.from) + z * p.from_stride,
                           static_cast<Element*>(p.to) + z * p.to_stride, i0, j0,
                           *static_cast<TriangleTile<Element>*>(shared));
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
