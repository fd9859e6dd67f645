// The inner loops of host_packed: they pack rows of an operand into panels, and multiply two panels.
// Compiled once for each kind of vector unit.
#pragma once

#include "src/plan/problem.hpp"

#include <array>
#include <span>
#include <utility>

namespace hg {

// Rows of A, or rows of B (columns of op(B)), and a slice of K.
struct PackSource {
    const uint16_t* elements;
    int64_t row_stride, k_stride;
    int64_t rows, depth;
};

// A panel has some rows of an operand. Its words of 32 bits have one K each, as fp32, or two, as bf16 with
// the first in the upper half, for AMX in the lower one. The words of all its rows for the first K (or two)
// come first, `ld` words apart from those of the next; zeros follow the last row. By rows, 16 words of each
// row come first, then the next 16 of each.
struct Panels {
    int64_t rows;  // of each but the last
    int64_t ld;
    int64_t words;     // from one panel to the next
    uint16_t missing;  // K that the last word lacks: -0 in A times 0 in B is -0, which changes no sum
    bool by_rows;
    bool whole;  // the words of a row are a multiple of 16, the last of them zeros
};

// Panels of A times panels of B: sums[i * sums_ld + j] = the products' sum, which begins with +0; added to
// what was there unless `first`.
struct PanelProduct {
    const float *a, *b;
    const Panels &a_panels, &b_panels;
    int64_t rows, columns;  // of all panels
    int64_t words;          // of each row
    float* sums;
    int64_t sums_ld;
    bool first;
};

struct PackedKernels {
    // Returns the exponent field of the smallest number that is not zero; 0 if there is a subnormal number,
    // an infinity or NaN, or where multiply() does not ask.
    using Pack = int (*)(const PackSource&, const Panels&, float* words);
    using Multiply = void (*)(const PanelProduct&);
    // Of rows of A that are contiguous along K, as they lie in memory. Returns what Pack does for them:
    // where that is too little for multiply_lines(), its sums are wrong.
    using MultiplyLines = int (*)(const PackSource& a, const PanelProduct&);

    const char* name;
    bool (*runs_here)();
    bool leads;                   // measured to be as fast as OpenBLAS
    int per_word;                 // K in a word: 1 or 2
    int tile_rows, tile_columns;  // of the largest tile; other tiles have fewer rows
    int row_step;                 // sums have room for a multiple of so many rows
    int row_ld;                   // of panels of A
    bool has_squares;             // rows of A are packed by rows, all in whole words: as AMX wants them
    double work;                  // products that are worth another thread
    Pack pack_f16, pack_bf16;     // null: not for that type
    Multiply multiply;            // it may take subnormal numbers for zero
    Multiply multiply_exactly;    // gives the same bits where nothing is subnormal
    MultiplyLines multiply_lines, multiply_lines_exactly;  // null: none
    // Those that are not exact may be used if the exponents that the packing of A and B returned are not 0
    // and add up to this.
    int least_exponents;

    Pack pack(Type type) const { return type == Type::F16 ? pack_f16 : pack_bf16; }
};

// All that were compiled and add in ascending order of K, the preferred ones first; the last one runs
// everywhere and serves both types.
std::span<const PackedKernels* const> packed_kernels();

// The first of them that runs on this machine and serves the type.
const PackedKernels& best_packed_kernels(Type type);

// AMX adds in another order: units/amx.cpp. Null where it was not compiled.
const PackedKernels* amx_kernels();

}  // namespace hg
