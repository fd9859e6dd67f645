// Copies operands to rows that begin at multiples of 128 bytes, for kernels that read aligned vectors or
// boxes of TMA.
//
// Loads are aligned vectors of 16 bytes; extract_vector() takes a vector of the copy out of two neighbours,
// at an offset that differs from row to row. Elements between the rows of the operand are copied along with
// them, past the end of the copy's rows, where no kernel reads them; nothing before an operand's first
// element or after its last one is read.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/repack/config.hpp"

#include <cstdint>

namespace hg {

// Eight elements with single loads, all issued before the first is used. If `count` is less than eight, the
// last one repeats; no kernel reads those copies.
__device__ inline uint4 gather_repeating_last(const uint16_t* from, int64_t stride, int64_t count)
{
    const int last = count < repack_vector ? static_cast<int>(count) - 1 : repack_vector - 1;
    uint32_t elements[repack_vector];
#pragma unroll
    for (int i = 0; i < repack_vector; ++i)
        elements[i] = from[min(i, last) * stride];
    return make_uint4(elements[0] | elements[1] << 16, elements[2] | elements[3] << 16,
                      elements[4] | elements[5] << 16, elements[6] | elements[7] << 16);
}

// A thread's part of a tile: vector `vector` of rows first, first + step, ... or, if the elements of a row
// are not contiguous, of row `first` alone.
struct RepackPart {
    const uint16_t* base;  // of the problem
    uint16_t* to;          // the vector's place in row `first`
    int64_t first, vector;
    int32_t step;  // rows
};

// Neighbouring lanes read neighbouring elements: along a row or, if its elements are not contiguous, across
// rows.
__device__ inline RepackPart repack_part(const RepackOperand& o, uint32_t tile)
{
    const uint32_t rest = tile / o.tiles_along, z = rest / o.tiles_across;
    const auto thread = static_cast<int32_t>(threadIdx.x);
    const int32_t log2_across = repack_log2_threads - o.log2_along;
    const int32_t along = 1 << o.log2_along, across = 1 << log2_across;
    const bool by_row = o.element_stride == 1;
    RepackPart part;
    part.step = across;
    part.vector = int64_t{tile - rest * o.tiles_along} << o.log2_along;
    part.vector += by_row ? thread & (along - 1) : thread >> log2_across;
    part.first = int64_t{rest - z * o.tiles_across} * (by_row ? across * repack_rows : across);
    part.first += by_row ? thread >> o.log2_along : thread & (across - 1);
    part.base = problem_base(o.ptr, o.array, z, 2 * o.batch_stride);
    part.to = o.to + (z * o.rows + part.first) * o.to_stride + part.vector * repack_vector;
    return part;
}

__device__ inline void store_copy(uint16_t* to, const uint4& vector)
{
    ptx::store_global_v4(reinterpret_cast<uint4*>(to), vector);
}

// Rows of contiguous elements: issues all loads before using the first.
__device__ inline void repack_contiguous(const RepackOperand& o, const RepackPart& part)
{
    const auto begin = reinterpret_cast<uintptr_t>(part.base);
    const auto end = reinterpret_cast<uintptr_t>(part.base + (o.rows - 1) * o.row_stride + o.columns);
    const int64_t element = part.vector * repack_vector;
    const uint16_t* const from = part.base + part.first * o.row_stride + element;
    const int64_t stride = part.step * o.row_stride;
    const int64_t rows_left = o.rows - part.first;
    uint4 low[repack_rows], high[repack_rows];
    uint32_t loaded = 0;
#pragma unroll
    for (int i = 0; i < repack_rows; ++i) {
        const auto address = reinterpret_cast<uintptr_t>(from + i * stride);
        const uintptr_t first = address & ~uintptr_t{15}, last = (address + 15) & ~uintptr_t{15};
        if (i * part.step < rows_left && first >= begin && last + 16 <= end) {
            low[i] = *reinterpret_cast<const uint4*>(first);
            high[i] = *reinterpret_cast<const uint4*>(last);
            loaded |= 1 << i;
        }
    }
    const int64_t to_stride = part.step * o.to_stride;
#pragma unroll
    for (int i = 0; i < repack_rows; ++i) {
        const auto offset = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from + i * stride)) % 16;
        if (loaded >> i & 1)
            store_copy(part.to + i * to_stride, extract_vector(low[i], high[i], offset));
    }
    if (loaded == (1 << repack_rows) - 1)
        return;
#pragma unroll 1
    for (int i = 0; i < repack_rows; ++i)
        if (i * part.step < rows_left && !(loaded >> i & 1))
            store_copy(part.to + i * to_stride,
                       gather_repeating_last(from + i * stride, 1, o.columns - element));
}

// Rows whose elements are not contiguous.
__device__ inline void repack_scattered(const RepackOperand& o, const RepackPart& part)
{
    const int64_t element = part.vector * repack_vector;
    if (part.first < o.rows)
        store_copy(part.to,
                   gather_repeating_last(part.base + part.first * o.row_stride + element * o.element_stride,
                                         o.element_stride, o.columns - element));
}

// The whole kernel: CTA i copies tiles i, i + CTAs, ... of both operands.
__device__ inline void copy_operands(const RepackParams& p)
{
    if (p.alpha_device && *p.alpha_device == 0.0f)
        return;
    const uint32_t tiles = p.operands[0].tiles + p.operands[1].tiles;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const bool second = tile >= p.operands[0].tiles;
        const RepackOperand& o = p.operands[second];
        const RepackPart part = repack_part(o, second ? tile - p.operands[0].tiles : tile);
        if (part.vector * repack_vector >= o.columns)
            continue;
        if (o.element_stride == 1)
            repack_contiguous(o, part);
        else
            repack_scattered(o, part);
    }
}

}  // namespace hg
