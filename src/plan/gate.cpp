#include "src/plan/gate.hpp"

#include "src/plan/sums.hpp"

#include <numeric>

namespace hg {
namespace {

constexpr int64_t bytes_of_element = 2 * sizeof(float);

// How many matrices of sums a part has, or half of so many: contiguous groups share one.
int64_t matrices_of(const Problem& p, const GateCut& cut)
{
    return p.groups.contiguous() ? 1 : cut.problems;
}

// From the sums of a part's gates to those of their up elements.
int64_t apart_of(const Problem& p, const GateCut& cut)
{
    return cut.two ? matrices_of(p, cut) * cut.rows * cut.ld : p.gate.block;
}

int64_t problem_stride_of(const Problem& p, const GateCut& cut)
{
    return p.groups.contiguous() ? 0 : cut.rows * cut.ld;
}

// The first column of product number `index` of a piece.
int64_t first_column(const Problem& p, const GateCut& cut, const GatePiece& piece, int index)
{
    return cut.two ? piece.column + index * p.gate.block : 2 * piece.column;
}

// Of the groups, what a piece has: rows from its first one on, and if each group has a matrix of its own,
// groups from the first one on.
Groups groups_of(const Problem& p, const GatePiece& piece)
{
    Groups groups = p.groups;
    if (!p.is_grouped())
        return groups;
    groups.origin = static_cast<int32_t>(piece.row);
    if (groups.masked()) {
        const auto bytes = static_cast<int64_t>(groups.narrow ? sizeof(int32_t) : sizeof(int64_t));
        groups.sizes = static_cast<const char*>(groups.sizes) + piece.problem * bytes;
    }
    return groups;
}

}  // namespace

GateCut cut_gates(const Problem& p, size_t room)
{
    constexpr int64_t few_columns = 1024;
    const int64_t all = p.columns(),
                  unit = has_halves(p) ? sums_vector : std::lcm(p.gate.block, sums_vector);
    const int64_t bytes = static_cast<int64_t>(room) / sums_alignment * sums_alignment;
    const int64_t elements = std::clamp<int64_t>(bytes / bytes_of_element, sums_vector, max_sums);
    GateCut cut{p.m, round_up(all, sums_vector), p.groups.contiguous() ? p.batch : 1, false, 0, 0};
    if (cut.columns > elements / p.m) {
        const int64_t least = std::min(all, few_columns),
                      wide = std::min(round_up(least, unit), elements / unit * unit);
        cut.columns = std::max({elements / p.m / unit * unit, wide, unit});
        cut.rows = std::clamp<int64_t>(elements / cut.columns, 1, p.m);
    }
    if (cut.columns > all)
        cut.columns = all;
    cut.two = has_halves(p) && cut.columns < all;
    cut.ld = round_up(cut.two ? cut.columns : 2 * cut.columns, sums_vector);
    const int64_t problem = cut.rows * cut.ld * cut.products() / 2;
    if (cut.rows == p.m && cut.columns == all && !p.groups.contiguous())
        cut.problems = std::clamp<int64_t>(elements / problem, 1, p.batch);
    cut.sums_bytes =
        static_cast<size_t>(round_up(matrices_of(p, cut) * problem * bytes_of_element, sums_alignment));
    return cut;
}

Problem product_of(const Problem& p, const GateCut& cut, const GatePiece& piece, int index, float* sums)
{
    const int64_t column = first_column(p, cut, piece, index);
    Problem product = p.without_gates();
    product.aux = {};
    product.groups = groups_of(p, piece);
    product.batch = piece.problems;
    product.m = piece.rows;
    product.n = cut.two ? piece.columns : 2 * piece.columns;
    product.a = p.a.from(piece.problem, piece.row);
    product.b = p.b.from(piece.problem, column);
    product.c = p.c.from(piece.problem, piece.row, column);
    product.bias = p.bias.from(piece.problem, piece.row, column);
    product.d = {sums + index * apart_of(p, cut), nullptr, cut.ld, problem_stride_of(p, cut), Type::F32, 0};
    product.simplify();
    return product;
}

GatePass pass_of(const Problem& p, const GateCut& cut, const GatePiece& piece, const float* sums)
{
    return {sums,
            cut.ld,
            problem_stride_of(p, cut),
            apart_of(p, cut),
            has_halves(p) ? 0 : p.gate.block,
            p.gate,
            p.activation,
            p.d.from(piece.problem, piece.row, piece.column),
            p.aux.from(piece.problem, piece.row, first_column(p, cut, piece, 0)),
            piece.rows,
            piece.columns,
            p.groups.contiguous() ? 1 : piece.problems,
            groups_of(p, piece),
            piece.problems};
}

}  // namespace hg
