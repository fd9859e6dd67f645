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
// the first in the upper half. The words of all its rows for the first K (or two) come first, `ld` words
// apart from those of the next; zeros follow the last row.
struct Panels {
    int64_t rows;  // of each but the last
    int64_t ld;
    int64_t words;     // from one panel to the next
    uint16_t missing;  // K that the last word lacks: -0 in A times 0 in B is -0, which changes no sum
};

struct PackedKernels {
    // Returns the exponent field of the smallest number that is not zero; 0 if there is a subnormal number,
    // an infinity or NaN, or where tiles do not ask.
    using Pack = int (*)(const PackSource&, const Panels&, float* words);
    // sums[i * ld + j] = the products' sum in ascending order of K, which begins with +0; added to what was
    // there unless `first`. `words` is how many each row has.
    using Tile = void (*)(const float* a, const float* b, int64_t words, float* sums, int64_t ld,
                          bool first);

    const char* name;
    bool (*runs_here)();
    bool leads;                   // measured to be as fast as OpenBLAS
    int per_word;                 // K in a word: 1 or 2
    int tile_rows, tile_columns;  // of the largest tile; other tiles have fewer rows
    int row_ld;                   // of panels of A
    Pack pack_f16, pack_bf16;     // null: not for that type
    const Tile* tiles;            // [rows - 1]; they may take subnormal numbers for zero
    const Tile* exact_tiles;      // [rows - 1]; give the same bits where nothing is subnormal
    // tiles may be used if the exponents that the packing of A and B returned are not 0 and add up to this.
    int least_exponents;

    Pack pack(Type type) const { return type == Type::F16 ? pack_f16 : pack_bf16; }
};

// All that were compiled, the preferred ones first; the last one runs everywhere and serves both types.
std::span<const PackedKernels* const> packed_kernels();

// The first of them that runs on this machine and serves the type.
const PackedKernels& best_packed_kernels(Type type);

}  // namespace hg
