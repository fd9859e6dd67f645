// Copies of operands that TMA cannot address: lines of 16-bit elements, to lines that begin at whole spans.
//
// Vectors of 16 bytes are read where they are aligned in memory; two neighbours give one of the copy,
// whose place in them every line has its own. What lies between lines is read and copied along with them,
// to where nobody looks; nothing before an operand's first element or behind its last one is read.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/sm90/repack/config.hpp"

#include <cstdint>

namespace hg::sm90 {

// Eight elements, the last of `count` again where there are fewer: nobody looks at these. All loads first.
__device__ inline uint4 gather_copied(const uint16_t* from, int64_t stride, int64_t count)
{
    const int last = count < repack_vector ? static_cast<int>(count) - 1 : repack_vector - 1;
    uint32_t elements[repack_vector];
#pragma unroll
    for (int i = 0; i < repack_vector; ++i)
        elements[i] = from[min(i, last) * stride];
    return make_uint4(elements[0] | elements[1] << 16, elements[2] | elements[3] << 16,
                      elements[4] | elements[5] << 16, elements[6] | elements[7] << 16);
}

// This thread's part of a tile: vector `vector` of the lines first, first + step, ... or, where elements
// are apart, of `first` alone.
struct RepackPart {
    const uint16_t* base;  // of the problem
    uint16_t* to;          // the vector's place in line `first`
    int64_t first, vector;
    int32_t step;  // lines
};

// Neighbours in a warp read what lies side by side: elements of a line or, where these are apart, of lines.
__device__ inline RepackPart repack_part(const RepackOperand& o, uint32_t tile)
{
    const uint32_t rest = tile / o.tiles_along, z = rest / o.tiles_across;
    const auto thread = static_cast<int32_t>(threadIdx.x);
    const int32_t log2_across = repack_log2_threads - o.log2_along;
    const int32_t along = 1 << o.log2_along, across = 1 << log2_across;
    const bool by_line = o.element_stride == 1;
    RepackPart part;
    part.step = across;
    part.vector = int64_t{tile - rest * o.tiles_along} << o.log2_along;
    part.vector += by_line ? thread & (along - 1) : thread >> log2_across;
    part.first = int64_t{rest - z * o.tiles_across} * (by_line ? across * repack_lines : across);
    part.first += by_line ? thread >> o.log2_along : thread & (across - 1);
    part.base = o.array ? o.array[z] : o.ptr + z * o.batch_stride;
    part.to = o.to + (z * o.lines + part.first) * o.to_stride + part.vector * repack_vector;
    return part;
}

__device__ inline void store_copied(uint16_t* to, const uint4& vector)
{
    ptx::store_global_v4(reinterpret_cast<uint4*>(to), vector);
}

// Contiguous elements. All loads first.
__device__ inline void repack_contiguous(const RepackOperand& o, const RepackPart& part)
{
    const auto begin = reinterpret_cast<uintptr_t>(part.base);
    const auto end = reinterpret_cast<uintptr_t>(part.base + (o.lines - 1) * o.line_stride + o.length);
    const int64_t element = part.vector * repack_vector;
    const uint16_t* const from = part.base + part.first * o.line_stride + element;
    const int64_t stride = part.step * o.line_stride;
    const int64_t left = o.lines - part.first;
    uint4 low[repack_lines], high[repack_lines];
    uint32_t whole = 0;
#pragma unroll
    for (int i = 0; i < repack_lines; ++i) {
        const auto address = reinterpret_cast<uintptr_t>(from + i * stride);
        const uintptr_t first = address & ~uintptr_t{15}, last = (address + 15) & ~uintptr_t{15};
        if (i * part.step < left && first >= begin && last + 16 <= end) {
            low[i] = *reinterpret_cast<const uint4*>(first);
            high[i] = *reinterpret_cast<const uint4*>(last);
            whole |= 1 << i;
        }
    }
    const int64_t to_stride = part.step * o.to_stride;
#pragma unroll
    for (int i = 0; i < repack_lines; ++i) {
        const auto offset = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from + i * stride)) % 16;
        if (whole >> i & 1)
            store_copied(part.to + i * to_stride, take_vector(low[i], high[i], offset));
    }
    if (whole == (1 << repack_lines) - 1)
        return;
#pragma unroll 1
    for (int i = 0; i < repack_lines; ++i)
        if (i * part.step < left && !(whole >> i & 1))
            store_copied(part.to + i * to_stride, gather_copied(from + i * stride, 1, o.length - element));
}

// Elements with others between them.
__device__ inline void repack_scattered(const RepackOperand& o, const RepackPart& part)
{
    const int64_t element = part.vector * repack_vector;
    if (part.first < o.lines)
        store_copied(part.to,
                     gather_copied(part.base + part.first * o.line_stride + element * o.element_stride,
                                   o.element_stride, o.length - element));
}

__device__ inline void run_repack(const RepackParams& p)
{
    if (p.early)
        ptx::launch_dependents();
    // The kernel before may have written the operands, or still read the copies of the product before.
    ptx::wait_for_earlier_grids();
    if (p.alpha_device && *p.alpha_device == 0.0f)
        return;
    const uint32_t tiles = p.operands[0].tiles + p.operands[1].tiles;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const bool second = tile >= p.operands[0].tiles;
        const RepackOperand& o = p.operands[second];
        const RepackPart part = repack_part(o, second ? tile - p.operands[0].tiles : tile);
        if (part.vector * repack_vector >= o.length)
            continue;
        if (o.element_stride == 1)
            repack_contiguous(o, part);
        else
            repack_scattered(o, part);
    }
    ptx::launch_dependents();
}

}  // namespace hg::sm90
