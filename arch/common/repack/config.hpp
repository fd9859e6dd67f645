// The copy of operands that a kernel cannot read: configuration and parameters. Host and device.
#pragma once

#include <cstdint>

namespace hg {

// A thread copies a vector of eight elements in each of repack_rows rows at a time, so that eight loads are
// in flight; or, if the elements of a row are not contiguous, one vector by eight loads.
constexpr int repack_log2_threads = 8, repack_threads = 1 << repack_log2_threads;
constexpr int repack_line = 64;  // elements, of which the lines of a copy begin at multiples
constexpr int repack_ctas_per_sm = 3, repack_rows = 4, repack_vector = 8;

// The copy is row-major: a row is the contiguous dimension of the copy, K or not. Element i of row r of
// problem z is at base(z) + r * row_stride + i * element_stride, base(z) by problem_base(); its copy is at
// to + (z * rows + r) * to_stride + i.
struct RepackOperand {
    const uint16_t* ptr;
    const uint16_t* const* array;
    int64_t batch_stride, row_stride, element_stride;
    uint16_t* to;
    int64_t to_stride, rows, columns;
    int32_t log2_along;                         // threads along a row; the others lie across rows
    uint32_t tiles_along, tiles_across, tiles;  // of a row, of a problem's rows, of all problems
};

struct RepackParams {
    RepackOperand operands[2];  // without tiles: nothing to copy
    const float* alpha_device;  // alpha in device memory, or null; if it is 0, no operand is read
    bool pdl_early;             // sm90 alone. Pdl::Early: the GEMM may start at once
};

}  // namespace hg
