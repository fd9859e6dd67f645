#include "src/plan/triangle.hpp"

#include <cstdint>
#include <utility>

namespace hg {
namespace {

// Of several blocks of a problem, each `piece.step` rows and columns further on, a batch.
Operand operand_of(const Operand& o, const TrianglePiece& piece, int64_t row)
{
    Operand part = o.from(piece.problem, row);
    if (piece.count > 1)
        part.batch_stride = piece.step * o.row_stride;
    return part;
}

Matrix matrix_of(const Matrix& x, const TrianglePiece& piece, int64_t row, int64_t column)
{
    Matrix part = x.from(piece.problem, row, column);
    if (piece.count > 1)
        part.batch_stride = piece.step * (x.ld + 1);
    return part;
}

}  // namespace

Problem problem_of(const Problem& triangle, const TrianglePiece& piece)
{
    const bool upper = triangle.triangle == Triangle::Upper;
    int64_t row = piece.row, column = piece.column;
    Problem part = triangle;
    part.triangle = Triangle::Whole;
    part.mirrored = false;
    part.m = piece.rows;
    part.n = piece.columns;
    if (!upper) {
        std::swap(row, column);
        std::swap(part.m, part.n);
    }
    part.batch = piece.batch();
    part.a = operand_of(triangle.a, piece, row);
    part.b = operand_of(triangle.b, piece, column);
    part.c = matrix_of(triangle.c, piece, row, column);
    part.d = matrix_of(triangle.d, piece, row, column);
    return part;
}

TriangleMove move_of_blocks(const Problem& triangle, const TrianglePiece& piece, const Matrix& blocks)
{
    return {blocks,
            matrix_of(triangle.d, piece, piece.row, piece.column),
            piece.rows,
            piece.batch(),
            triangle.triangle == Triangle::Upper,
            false};
}

TriangleMove mirror_of(const Problem& triangle)
{
    return {triangle.d, triangle.d, triangle.n, triangle.batch, triangle.triangle == Triangle::Upper, true};
}

}  // namespace hg
