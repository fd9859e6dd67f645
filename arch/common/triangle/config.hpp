// Moves of a triangle: configuration and parameters. Host and device.
#pragma once

#include "arch/common/divisor.hpp"

#include <cstdint>

namespace hg {

constexpr int triangle_threads = 256, triangle_ctas_per_sm = 6;
constexpr int triangle_tile = 64;  // rows and columns that a CTA moves at a time

// A tile in shared memory, as it is moved by elements. A row is one word longer, so that columns are read
// without bank conflicts. It has room for a tile that is moved by vectors too.
template <typename Element>
using TriangleTile = Element[triangle_tile][triangle_tile + 4 / sizeof(Element)];

// Element (i, j) of a problem is read at problem_base() + i * from_ld + j, in elements, and written to (i,
// j) of `to`, or if it is mirrored to (j, i).
struct TriangleParams {
    const void* from;
    const void* const* from_array;
    void* to;
    void* const* to_array;
    int64_t from_ld, from_stride, to_ld, to_stride;
    int32_t n;       // rows and columns of a problem
    int32_t tiles;   // of a row
    int32_t chunks;  // that CTAs count, of all problems; see triangle_chunks()
    Divisor chunks_of_problem, chunks_of_pair;
    bool words;     // elements have four bytes, else two
    bool vectors;   // 16-byte accesses can walk the rows of both matrices
    bool upper;     // i <= j is read, else j <= i
    bool mirrored;  // and then not i = j
};

// Rows i and tiles - 1 - i of tiles have tiles + 1 tiles of a triangle together, and are counted as one
// row. Where the row in the middle is its own partner, the second half of its chunks has nothing to do.
constexpr int64_t triangle_chunks(int64_t tiles) { return (tiles + 1) / 2 * (tiles + 1); }

}  // namespace hg
