// Tensor maps of operands and outputs, for the backends that use TMA.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "src/driver/driver.hpp"

#include <cuda.h>

#include <algorithm>
#include <cmath>

namespace hg {

// Boxes have `line` elements in the contiguous dimension, which is also the swizzle's span, and `lines` in
// the other. If the problems of a batch share the operand, the map has one matrix.
inline Status encode_operand(const Operand& o, const Problem& p, int64_t rows, int line, int lines,
                             CUtensorMap& map)
{
    const bool k_major = major_of(o) == Major::K;
    const bool batched = p.batch > 1 && o.batch_stride > 0;
    driver::TensorMapRequest r{};
    r.base = o.ptr;
    r.type = p.type_ab;
    r.size[0] = k_major ? p.k : rows;
    r.size[1] = k_major ? rows : p.k;
    r.size[2] = batched ? p.batch : 1;
    r.stride_bytes[0] = 2 * line_stride(o);
    r.stride_bytes[1] = batched ? 2 * o.batch_stride : 16;
    r.box[0] = static_cast<uint32_t>(line);
    r.box[1] = static_cast<uint32_t>(lines);
    r.box[2] = 1;
    r.span_bytes = static_cast<uint32_t>(2 * line);
    return driver::encode_tensor_map(r, &map);
}

// For D, C or aux, `width` elements wide. The swizzle's span is `columns` wide.
inline driver::TensorMapRequest request_of(const Matrix& matrix, int64_t width, const Problem& p,
                                           int columns, int rows)
{
    const int64_t bytes = bytes_of(matrix.type);
    driver::TensorMapRequest r{};
    r.base = matrix.ptr;
    r.type = matrix.type;
    r.size[0] = width;
    r.size[1] = p.m;
    r.size[2] = p.batch;
    r.stride_bytes[0] = bytes * matrix.ld;
    r.stride_bytes[1] = p.batch > 1 ? bytes * matrix.batch_stride : 16;
    r.box[0] = static_cast<uint32_t>(columns);
    r.box[1] = static_cast<uint32_t>(rows);
    r.box[2] = 1;
    r.span_bytes = static_cast<uint32_t>(columns * bytes);
    return r;
}

inline Status encode_matrix(const Matrix& matrix, int64_t width, const Problem& p, int columns, int rows,
                            CUtensorMap& map)
{
    return driver::encode_tensor_map(request_of(matrix, width, p, columns, rows), &map);
}

// How many rows of tiles are walked together such that the tiles in flight form a square of elements, which
// reads the fewest bytes.
inline int32_t square_group(int tile_m, int tile_n, int tiles_in_flight)
{
    return std::max(static_cast<int32_t>(std::sqrt(static_cast<double>(tiles_in_flight) * tile_n / tile_m)),
                    1);
}

inline TileGrid square_grid(int64_t m, int64_t n, int tile_m, int tile_n, int tiles_in_flight)
{
    const auto tiles_m = static_cast<int32_t>(ceil_div(m, tile_m));
    const auto tiles_n = static_cast<int32_t>(ceil_div(n, tile_n));
    return tile_grid(tiles_m, tiles_n, square_group(tile_m, tile_n, tiles_in_flight));
}

}  // namespace hg
