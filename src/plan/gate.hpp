// A gated product in parts: a block of the product is computed in the workspace, in fp32, and a pass gates
// it.
//
// A block is one matrix of twice as many columns as its part of D has. But if lines are cut in which all
// gates lie in front, it has two matrices: the gates of some columns of D, and their up elements.
#pragma once

#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hg {

// How much of D a part has at most, and what that takes.
struct GateCut {
    int64_t rows, columns, problems;
    bool two;    // matrices, and products: see above
    int64_t ld;  // of a matrix of sums
    size_t sums_bytes;

    constexpr int products() const { return two ? 2 : 1; }
};

struct GatePiece {
    int64_t row, rows, column, columns, problem, problems;
};

// Element (i, j) of D in problem z has its gate at sums + z * problem_stride + i * ld + place(j), and what
// its up element `apart` elements further. place(j) is j, or if block is not 0 the place of gate number j
// in a line. aux, if there is one, has gates at the same places, and up elements gate.block elements
// further.
struct GatePass {
    const float* sums;
    int64_t ld, problem_stride, apart, block;
    Gate gate;
    Activation activation;
    Matrix d, aux;
    int64_t rows, columns, batch;
    Groups groups;  // rows that no group owns stay as they are
    int64_t group_count;

    constexpr int64_t place(int64_t j) const { return block == 0 ? j : j + j / block * block; }
};

// The gradient of a gated result: hgemm_gate_gradient().
struct GateGradient {
    int64_t rows, columns;  // of D
    const void* product;
    int64_t ld_product;
    const void* of_d;
    int64_t ld_of_d;
    void* of_product;
    int64_t ld_of_product;
    Type type_product, type_of_d, type_of_product;
    Activation activation;
    Gate gate;

    // Where in a line of the product gate number j lies. Its up element is gate.block elements further.
    constexpr int64_t place(int64_t j) const { return j + j / gate.block * gate.block; }
};

// Do all gates lie in front of all up elements?
inline bool has_halves(const Problem& p) { return 2 * p.gate.block == p.n; }

// Cuts a gated problem so that a part's sums fit in `room` bytes, if there is a way. Blocks of few columns
// would read all rows of A too often. A block of groups has some of their rows.
GateCut cut_gates(const Problem& p, size_t room);

template <typename Visit>
void for_each_gate_piece(const Problem& p, const GateCut& cut, Visit visit)
{
    for (int64_t z = 0; z < p.batch; z += cut.problems)
        for (int64_t row = 0; row < p.m; row += cut.rows)
            for (int64_t column = 0; column < p.columns(); column += cut.columns)
                visit(GatePiece{row, std::min(cut.rows, p.m - row), column,
                                std::min(cut.columns, p.columns() - column), z,
                                std::min(cut.problems, p.batch - z)});
}

// Product number `index` of a piece, to the workspace.
Problem product_of(const Problem& p, const GateCut& cut, const GatePiece& piece, int index, float* sums);
GatePass pass_of(const Problem& p, const GateCut& cut, const GatePiece& piece, const float* sums);

}  // namespace hg
