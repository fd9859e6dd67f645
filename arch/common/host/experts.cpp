#include "arch/common/host/experts.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "src/base/displaced.hpp"
#include "src/plan/sums.hpp"

#include <algorithm>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t bytes_of_unit = 16, columns_of_unit = 8;

// Are all accesses to A and D, or to A and B, whole vectors?
bool takes_vectors(const RowMove& what)
{
    const bool a = is_vector_aligned(what.a, what.lda, 0, bytes_of(what.type_a)),
               other = what.how == Rows::Dot
                           ? is_vector_aligned(what.b, what.ldb, 0, bytes_of(what.type_b))
                           : is_vector_aligned(what.d, what.ldd, 0, bytes_of(what.type_d));
    return what.columns % columns_of_unit == 0 && a && other;
}

}  // namespace

int64_t count_route_ctas(const Route& what, int64_t most, size_t workspace)
{
    const int64_t room = static_cast<int64_t>(workspace) / what.counts_bytes();
    return std::clamp<int64_t>(std::min(what.ctas(), room), 1, most);
}

RouteParams pack_route(const Route& what, int64_t ctas, int32_t* counts)
{
    RouteParams p{};
    p.chosen = what.chosen;
    p.narrow = what.narrow;
    p.ld = what.ld;
    p.choices = divisor(static_cast<int32_t>(what.choices));
    p.all_choices = static_cast<int32_t>(what.all_choices());
    p.warp_choices = static_cast<int32_t>(round_up(ceil_div(what.all_choices(), ctas * route_warps), 32));
    p.experts = static_cast<int32_t>(what.experts);
    p.counts = ctas > 1 ? counts : nullptr;
    p.ends = what.ends;
    p.choice_of_row = what.choice_of_row;
    p.row_of_choice = what.row_of_choice;
    return p;
}

int64_t tokens_at_once(const RowMove& what)
{
    constexpr int64_t units = int64_t{1} << 30;
    return std::max<int64_t>(1, units / std::max<int64_t>(1, what.columns));
}

RowsParams pack_rows(const RowMove& what, int64_t first, int64_t tokens)
{
    const bool gathers = what.how == Rows::Gather, vectors = takes_vectors(what);
    RowsParams p{};
    p.copies = gathers && vectors && !what.weights && what.type_a == what.type_d;
    p.width = static_cast<int32_t>(p.copies  ? bytes_of_unit / bytes_of(what.type_a)
                                   : vectors ? columns_of_unit
                                             : 1);
    p.row_of_choice = what.row_of_choice + first * what.choices;
    p.weights = displaced(what.weights, first * what.ldw * bytes_of(what.type_weights));
    p.a = what.how == Rows::Combine ? what.a : displaced(what.a, first * what.lda * bytes_of(what.type_a));
    p.b = what.b;
    p.d = gathers ? what.d : displaced(what.d, first * what.ldd * bytes_of(what.type_d));
    p.ldw = what.ldw;
    p.lda = what.lda;
    p.ldb = what.ldb;
    p.ldd = what.ldd;
    p.columns = static_cast<int32_t>(what.columns);
    p.choices = static_cast<int32_t>(what.choices);
    const int64_t units = what.how == Rows::Dot ? 1 : what.columns / p.width;
    p.units_of_row = divisor(static_cast<int32_t>(units));
    p.units = static_cast<int32_t>(units * tokens);
    p.limit = static_cast<int32_t>(what.all_choices());
    p.type_a = what.type_a;
    p.type_b = what.type_b;
    p.type_d = what.type_d;
    p.type_weights = what.type_weights;
    return p;
}

ClearParams pack_clear(const RowClear& what, int64_t most)
{
    const int64_t bytes = bytes_of(what.d.type);
    ClearParams p{};
    p.d = static_cast<char*>(what.d.ptr);
    p.ld_bytes = what.d.ld * bytes;
    p.stride_bytes = what.d.batch_stride * bytes;
    p.row_bytes = what.columns * bytes;
    p.groups = what.groups;
    p.group_count = static_cast<int32_t>(what.group_count);
    p.rows = static_cast<int32_t>(what.rows);
    p.matrices = static_cast<int32_t>(what.matrices());
    p.matrices_at_once = static_cast<int32_t>(std::min(what.matrices(), most));
    p.ctas_of_matrix = divisor(static_cast<int32_t>(most / p.matrices_at_once));
    p.vectors = p.row_bytes % bytes_of_unit == 0 &&
                is_vector_aligned(what.d.ptr, what.d.ld, what.d.batch_stride, bytes);
    return p;
}

}  // namespace hg
