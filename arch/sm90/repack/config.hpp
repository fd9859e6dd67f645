// sm90_repack, which copies operands that TMA cannot address: its parameters. Host and device.
#pragma once

#include <cstdint>

namespace hg::sm90 {

// A thread copies a vector of eight elements in each of repack_lines lines at a time, or one whose
// elements are apart: eight loads in flight.
constexpr int repack_log2_threads = 8, repack_threads = 1 << repack_log2_threads;
constexpr int repack_ctas_per_sm = 3, repack_lines = 4, repack_vector = 8;

// Element i of line l of problem z is at base(z) + l * line_stride + i * element_stride, base(z) as in
// Operand; its copy is at to + (z * lines + l) * to_stride + i.
struct RepackOperand {
    const uint16_t* ptr;
    const uint16_t* const* array;
    int64_t batch_stride, line_stride, element_stride;
    uint16_t* to;
    int64_t to_stride, lines, length;
    int32_t log2_along;                         // threads along a line; the others lie across lines
    uint32_t tiles_along, tiles_across, tiles;  // of a line, of a problem's lines, of all problems
};

struct RepackParams {
    RepackOperand operands[2];  // no tiles: nothing to copy
    const float* alpha_device;  // null, or where alpha lies: no operand is read where it is 0
    bool early;                 // the GEMM may start at once
};

}  // namespace hg::sm90
