#include "src/plan/triangle.hpp"

#include "src/base/displaced.hpp"

#include <cstdint>
#include <utility>

namespace hg {
namespace {

// `row`, `step`: of the operand's own rows.
Operand operand_of(const Operand& o, const TrianglePiece& piece, int64_t row)
{
    Operand part = o;
    part.ptr = displaced(o.ptr, 2 * (piece.problem * o.batch_stride + row * o.row_stride));
    if (piece.count > 1)
        part.batch_stride = piece.step * o.row_stride;
    return part;
}

Matrix matrix_of(const Matrix& x, const TrianglePiece& piece, int64_t row, int64_t column)
{
    Matrix part = x;
    part.ptr = displaced(x.ptr, bytes_of(x.type) * (piece.problem * x.batch_stride + row * x.ld + column));
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
    return {blocks.ptr,
            blocks.ld,
            blocks.batch_stride,
            matrix_of(triangle.d, piece, piece.row, piece.column),
            piece.rows,
            piece.batch(),
            triangle.triangle == Triangle::Upper,
            false};
}

TriangleMove mirror_of(const Problem& triangle)
{
    const Matrix& d = triangle.d;
    return {
        d.ptr, d.ld, d.batch_stride, d, triangle.n, triangle.batch, triangle.triangle == Triangle::Upper,
        true};
}

}  // namespace hg
