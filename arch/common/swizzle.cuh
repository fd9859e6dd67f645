// Operand tiles in shared memory: lines of 16-byte chunks, the chunks of a line permuted so that eight
// lines read or written at one chunk position touch all banks. The permutation is TMA's own for 64-byte
// and 128-byte spans (PTX ISA 5.5.7), on tiles aligned to 1024 bytes.
#pragma once

#include "arch/common/types.hpp"

namespace hg {

constexpr int chunk_bytes = 16, chunk_elements = 8;

// Byte offset of chunk `chunk` of line `line` in lines of Span bytes.
template <int Span>
__device__ constexpr int swizzle(int line, int chunk)
{
    static_assert(Span == 64 || Span == 128);
    constexpr int lines_per_row_of_banks = 128 / Span, chunks = Span / chunk_bytes;
    return line * Span + (chunk ^ (line / lines_per_row_of_banks % chunks)) * chunk_bytes;
}

// A tile of Rows x K elements. K-major: a line is a row of K elements. MN-major: panels of 64 rows, a
// line is one k of 64 rows. `row` and `k` name a chunk by its first element.
template <Major M, int Rows, int K>
__device__ constexpr int tile_offset(int row, int k)
{
    if constexpr (M == Major::K)
        return swizzle<2 * K>(row, k / chunk_elements);
    else
        return row / 64 * (128 * K) + swizzle<128>(k, row % 64 / chunk_elements);
}

}  // namespace hg
