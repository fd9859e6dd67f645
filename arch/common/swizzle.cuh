// Operand tiles in shared memory. A tile consists of lines of 64 or 128 bytes, a line of 16-byte chunks,
// permuted so that the chunks at one position of eight consecutive lines lie in different banks. The
// permutation is TMA's own for 64-byte and 128-byte spans (PTX ISA 5.5.7), on tiles aligned to 1024 bytes.
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

// Byte offset of the chunk of a tile of Rows x K elements whose first element is (row, k). K-major: a line
// holds the K elements of a row. MN-major: panels of 64 rows, in which a line holds the 64 rows of one K.
template <Major M, int Rows, int K>
__device__ constexpr int tile_offset(int row, int k)
{
    if constexpr (M == Major::K)
        return swizzle<2 * K>(row, k / chunk_elements);
    else
        return row / 64 * (128 * K) + swizzle<128>(k, row % 64 / chunk_elements);
}

}  // namespace hg
