// What moves the rows of a layer of experts: hgemm_route(), hgemm_gather_rows(), hgemm_combine_rows(),
// hgemm_dot_rows() and hgemm_clear_rows().
#pragma once

#include "arch/common/types.hpp"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg {

// The choices of all tokens, sorted by expert. `chosen` has those of token t at t * ld.
struct Route {
    int64_t tokens, choices, experts;
    const void* chosen;  // of type int64_t
    bool narrow;         // `chosen` are of type int32_t
    int64_t ld;
    int32_t *ends, *row_of_choice;
    int32_t* choice_of_row;  // null: is not written

    constexpr int64_t all_choices() const { return tokens * choices; }
    // CTAs that sort the choices, if there are so many. With more than one there are counts in the
    // workspace: so many bytes for each.
    constexpr int64_t ctas() const { return all_choices() <= 8192 ? 1 : (all_choices() + 4095) / 4096; }
    constexpr int64_t counts_bytes() const { return experts * static_cast<int64_t>(sizeof(int32_t)); }
};

enum class Rows { Gather, Combine, Dot };

// Rows of tokens become rows of choices (Gather), or the other way round; or rows of tokens, A, are
// multiplied by rows of choices, B (Dot).
struct RowMove {
    Rows how;
    int64_t tokens, choices, columns;
    const int32_t* row_of_choice;
    const void* weights;  // null: all are 1
    int64_t ldw;
    const void* a;
    int64_t lda;
    void* d;
    int64_t ldd;
    Type type_a, type_d, type_weights;
    const void* b;
    int64_t ldb;
    Type type_b;

    constexpr int64_t all_choices() const { return tokens * choices; }
};

// Rows of D that no group owns become 0: hgemm_clear_rows().
struct RowClear {
    Groups groups;  // without sizes: there is none
    int64_t group_count, rows, columns;
    Matrix d;  // contiguous groups lie in one, masked ones in one each

    constexpr int64_t matrices() const { return groups.by == GroupsBy::Counts ? group_count : 1; }
};

}  // namespace hg
