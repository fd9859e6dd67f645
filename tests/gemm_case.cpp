#include "gemm_case.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace hg::test {
namespace {

template <typename... Values>
void append(std::string& text, const char* format, Values... values)
{
    char part[160];
    std::snprintf(part, sizeof part, format, values...);
    text += part;
}

void append(std::string& text, const char* name, const Place& place, bool batched)
{
    if (place.gap != 0 || place.shift != 0)
        append(text, " %s(gap %" PRId64 ", shift %" PRId64 ")", name, place.gap, place.shift);
    if (batched)
        append(text, " %s.step %" PRId64, name, place.step);
}

char letter(hgemm_op_t op) { return op == HGEMM_NO_TRANS ? 'n' : op == HGEMM_TRANS ? 't' : 'c'; }

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

void with_stride(Extent& extent, int64_t step, int64_t unit)
{
    const int64_t size = round_up(extent.matrix_span() + std::max(step, -step) - 1, unit);
    extent.stride = step == 0 ? 0 : step > 0 ? size : -size;
}

}  // namespace

Extent GemmCase::extent(int64_t rows, int64_t columns, bool by_rows, const Place& place) const
{
    Extent e;
    e.lines = by_rows ? rows : columns;
    e.length = by_rows ? columns : rows;
    const int64_t unit = aligned ? 8 : 1;
    e.ld = round_up(std::max<int64_t>(e.length, 1) + place.gap, unit);
    e.batch = batch_count;
    with_stride(e, place.step, unit);
    return e;
}

Extent GemmCase::extent_bias() const
{
    Extent e;
    e.lines = 1;
    e.length = bias == HGEMM_BIAS_M ? m : n;
    e.ld = std::max<int64_t>(e.length, 1);
    e.batch = batch_count;
    with_stride(e, bias_step, 1);
    return e;
}

const char* name_of(Data data)
{
    switch (data) {
    case Data::Integers: return "integers";
    case Data::Normal: return "normal";
    case Data::Wide: return "wide";
    case Data::Cancelling: return "cancelling";
    }
    return "?";
}

std::string GemmCase::print() const
{
    std::string text;
    append(text, "%s %c%c %s", layout == HGEMM_ROW_MAJOR ? "row" : "col", letter(transa), letter(transb),
           hg::test::name_of(type_ab));
    if (!in_place)
        append(text, "+%s", hg::test::name_of(type_c));
    append(text, "->%s m %" PRId64 " n %" PRId64 " k %" PRId64 " alpha %g beta %g%s",
           hg::test::name_of(type_d), m, n, k, alpha, beta, device_scalars ? " (in memory)" : "");
    if (aligned)
        append(text, " aligned");
    const bool strided = batch != Batch::Single;
    if (strided)
        append(text, " batch %" PRId64 "%s", batch_count, batch == Batch::Arrays ? " (arrays)" : "");
    append(text, "a", a, strided);
    append(text, "b", b, strided);
    if (!in_place)
        append(text, "c", c, strided);
    append(text, "d", d, strided);
    if (bias != HGEMM_BIAS_NONE)
        append(text, " bias_%c %s step %" PRId64, bias == HGEMM_BIAS_M ? 'm' : 'n',
               hg::test::name_of(bias_type), bias_step);
    if (activation != HGEMM_ACTIVATION_NONE)
        append(text, " activation %d", static_cast<int>(activation));
    if (aux)
        append(text, "aux", aux_place, strided);
    if (uplo != HGEMM_UPLO_NONE)
        append(text, " uplo %d", static_cast<int>(uplo));
    if (is_gated())
        append(text, " gate(block %" PRId64 ", limit %g, slope %g, offset %g)", gate.block, gate.limit,
               gate.slope, gate.offset);
    append(text, "%s data %s seed %llu", guard == Guard::Fence ? " fenced" : "", name_of(data),
           static_cast<unsigned long long>(seed));
    return text;
}

}  // namespace hg::test
