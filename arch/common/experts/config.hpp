// Layers of experts: configuration and parameters of the kernels that order their rows, and that gather,
// combine, multiply and clear them. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/types.hpp"

#include <cstdint>

namespace hg {

constexpr int route_threads = 1024, route_warps = route_threads / 32;
// Experts that are counted at a time, in shared memory.
constexpr int log2_experts_at_once = 9, experts_at_once = 1 << log2_experts_at_once;

struct RouteShared {
    int32_t places[route_warps][experts_at_once];  // of each warp: its next rows
    int32_t sums[route_warps];
};

// As Route. Each warp has a part of the choices, in order.
struct RouteParams {
    const void* chosen;  // of type int64_t
    bool narrow;         // `chosen` are of type int32_t
    bool counts_alone;   // the first of two launches
    int64_t ld;
    Divisor choices;       // of a token
    int32_t all_choices;   // of all tokens
    int32_t warp_choices;  // of a warp: a multiple of 32
    int32_t experts;
    int32_t* counts;  // of each CTA's choices of each expert; null: there is one CTA
    int32_t *ends, *row_of_choice;
    int32_t* choice_of_row;  // null: is not written
};

constexpr int rows_threads = 256, rows_warps = rows_threads / 32, rows_ctas_per_sm = 4, dot_ctas_per_sm = 3;

// As RowMove. A unit is what a thread loads and stores at a time; of dot products, a token.
struct RowsParams {
    const int32_t* row_of_choice;
    const void* weights;  // null: all are 1
    const void *a, *b;
    void* d;
    int64_t ldw, lda, ldb, ldd;
    Divisor units_of_row;
    int32_t units;    // of all tokens
    int32_t columns;  // of dot products
    int32_t choices;  // of a token
    int32_t width;    // elements of a unit: 1, eight, or with `copies` as many as have 16 bytes
    int32_t limit;    // rows of choices: numbers outside are of none
    bool copies;      // bits of A, in units of 16 bytes
    Type type_a, type_b, type_d, type_weights;
};

// As RowClear.
struct ClearParams {
    char* d;
    int64_t ld_bytes, stride_bytes, row_bytes;
    Groups groups;
    int32_t group_count, rows;
    int32_t matrices, matrices_at_once;
    Divisor ctas_of_matrix;
    bool vectors;  // of 16 bytes
};

}  // namespace hg
