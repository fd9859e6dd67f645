// The inner loops of host_rows: the large operand is read once, widened in registers and multiplied by all
// of the few rows with fp32 FMA. Compiled once for each kind of vector unit.
#pragma once

#include "src/plan/problem.hpp"

#include <span>

namespace hg {

constexpr int few_rows = 8;

// A loop computes sums[i * sums_ld + j] += sum over p < depth of few[i * few_ld + p] * many(j, p).
struct RowsTile {
    // The large operand, `stride` elements from row j to row j + 1 (K-major) or from p to p + 1.
    const uint16_t* many;
    int64_t stride;
    int64_t columns, depth;
    const float* few;  // each row followed by zeros up to a multiple of rows_padding
    int64_t few_ld;
    int rows;     // up to few_rows
    float* sums;  // each row with room for a multiple of rows_padding
    int64_t sums_ld;
};

constexpr int64_t rows_padding = 16;

// The first `count` elements, up to four, in one word: an array would be stored before it could be loaded.
inline uint64_t pack_four(const uint16_t* elements, int64_t count)
{
    uint64_t word = 0;
    for (int64_t i = 0; i < count; ++i)
        word |= uint64_t{elements[i]} << (16 * i);
    return word;
}

// The order in which an element's terms are added depends on `depth` and the vector unit alone.
struct RowsKernels {
    using Loop = void (*)(const RowsTile&);

    const char* name;
    bool (*runs_here)();
    Loop f16_along_k, bf16_along_k, f16_along_columns, bf16_along_columns;

    Loop loop(Type type, bool along_k) const
    {
        return type == Type::F16 ? (along_k ? f16_along_k : f16_along_columns)
                                 : (along_k ? bf16_along_k : bf16_along_columns);
    }
};

// All that were compiled, the preferred one first; the last one runs everywhere.
std::span<const RowsKernels* const> rows_kernels();

// The first of them that runs on this machine.
const RowsKernels& best_rows_kernels();

}  // namespace hg
