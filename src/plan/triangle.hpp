// Triangle: a symmetric product as products of rectangles beside the diagonal and of blocks on it.
//
// Where blocks of 2 h are cut into four of h, the one beside the diagonal is a product. h is halved until
// it is the size of the blocks on the diagonal, of which all is computed:
//
//     a b c c        h = 2: c   h = 1: b and e   blocks: a, d, f, g
//       d c c
//         f e
//           g
#pragma once

#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hg {

// From the workspace to D, or from one half of D to the other: element (i, j) of a problem of `from` is
// written to (i, j) of `to`, or if it is mirrored to (j, i).
struct TriangleMove {
    Matrix from, to;
    int64_t n, batch;
    bool upper;
    bool mirrored;  // and not the diagonal
};

// One launch: `problems` of the batch from `problem` on, or `count` equal parts of one problem, each `step`
// rows and columns further on. Pointer arrays have no such steps: a part of some problems.
struct TrianglePiece {
    int64_t row, rows, column, columns;  // in the upper half
    int64_t count, step;
    bool on_diagonal;
    int64_t problem, problems;

    int64_t batch() const { return std::max(count, problems); }
};

// Calls visit(piece) for every launch. Those on the diagonal have `most` parts or problems.
template <typename Visit>
void for_each_launch(const Problem& p, TrianglePiece piece, int64_t most, Visit visit)
{
    const int64_t batch = p.batch;
    const int64_t at_once = piece.on_diagonal ? most : std::max(batch, piece.count);
    const int64_t parts = piece.count, first = piece.row, distance = piece.column - piece.row;
    const bool by_problem = batch >= parts || p.has_arrays();
    const int64_t outer = by_problem ? parts : batch, inner = by_problem ? batch : parts;
    for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; j += at_once) {
            const int64_t size = std::min(at_once, inner - j), part = by_problem ? i : j;
            piece.row = first + part * piece.step;
            piece.column = piece.row + distance;
            piece.count = by_problem ? 1 : size;
            piece.problem = by_problem ? j : i;
            piece.problems = by_problem ? size : 1;
            visit(piece);
        }
}

// Every launch of a triangle with blocks of `block`: first the largest ones.
template <typename Visit>
void for_each_piece(const Problem& p, int64_t block, int64_t most, Visit visit)
{
    const int64_t n = p.n;
    const auto launch = [&](TrianglePiece piece) {
        if (piece.count > 0 && piece.rows > 0 && piece.columns > 0)
            for_each_launch(p, piece, most, visit);
    };
    int64_t h = block;
    while (2 * h < n)
        h *= 2;
    for (; h >= block && h < n; h /= 2) {
        const int64_t whole = n / (2 * h), rest = whole * 2 * h;
        launch({0, h, h, h, whole, 2 * h, false, 0, 0});
        launch({rest, h, rest + h, n - rest - h, 1, 0, false, 0, 0});
    }
    const int64_t whole = n / block, rest = whole * block;
    launch({0, block, 0, block, whole, block, true, 0, 0});
    launch({rest, n - rest, rest, n - rest, 1, 0, true, 0, 0});
}

// The product of a piece, whose D is where it belongs.
Problem problem_of(const Problem& triangle, const TrianglePiece& piece);
// The triangle of a block on the diagonal, from `blocks` to where it belongs.
TriangleMove move_of_blocks(const Problem& triangle, const TrianglePiece& piece, const Matrix& blocks);
// From the half of D that was computed to the other one.
TriangleMove mirror_of(const Problem& triangle);

}  // namespace hg
