#include "src/plan/problem.hpp"

#include "src/base/decimal.hpp"
#include "src/base/displaced.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace hg {

const char* name_of(Type t) { return t == Type::F16 ? "f16" : t == Type::BF16 ? "bf16" : "f32"; }

namespace {

// The operand or matrix that begins at problem `problem`, so many elements further on.
template <typename View>
View moved(View x, int64_t problem, int64_t elements, int64_t bytes_of_element)
{
    x.ptr = displaced(x.ptr, bytes_of_element * (problem * x.batch_stride + elements));
    if (x.array) {
        x.array += problem;
        x.offset += elements;
    }
    return x;
}

}  // namespace

Operand Operand::from(int64_t problem, int64_t row, int64_t k) const
{
    return moved(*this, problem, row * row_stride + k * k_stride, 2);
}

Matrix Matrix::from(int64_t problem, int64_t row, int64_t column) const
{
    return moved(*this, problem, row * ld + column, bytes_of(type));
}

Bias Bias::from(int64_t problem, int64_t row, int64_t column) const
{
    Bias part = *this;
    const int64_t first = problem * batch_stride + (along == BiasAlong::Rows ? row : column);
    part.ptr = displaced(ptr, first * bytes_of(type));
    return part;
}

void Problem::simplify()
{
    const auto is_column = [](const Matrix& matrix) { return !matrix.exists() || matrix.ld == 1; };
    if (!is_grouped() && !is_gated() && n == 1 && m > 1 && d.ld == 1 && is_column(c) && is_column(aux)) {
        std::swap(m, n);
        std::swap(a, b);
        bias.along = bias.along == BiasAlong::Rows      ? BiasAlong::Columns
                     : bias.along == BiasAlong::Columns ? BiasAlong::Rows
                                                        : BiasAlong::None;
    }
    align_unused_strides();
}

void Problem::align_unused_strides()
{
    constexpr int64_t vector = 8;
    const auto aligned = [](int64_t size) { return (size + vector - 1) / vector * vector; };
    if (m == 1 && a.k_stride == 1)
        a.row_stride = aligned(k);
    if (n == 1 && b.k_stride == 1)
        b.row_stride = aligned(k);
    if (k == 1 && a.row_stride == 1 && !is_grouped())
        a.k_stride = aligned(m);
    if (k == 1 && b.row_stride == 1)
        b.k_stride = aligned(n);
    if (m == 1) {
        c.ld = aux.ld = aligned(n);
        d.ld = aligned(columns());
    }
    if (batch == 1)
        a.batch_stride = b.batch_stride = c.batch_stride = d.batch_stride = aux.batch_stride =
            bias.batch_stride = 0;
    for (Operand* operand : {&a, &b})
        if (operand->array)
            operand->batch_stride = 0;
    for (Matrix* matrix : {&c, &d})
        if (matrix->array)
            matrix->batch_stride = 0;
}

void Problem::print(char* text, size_t length) const
{
    std::snprintf(
        text, length,
        "row-major D[%" PRId64 "][%" PRId64 "] %s = A(%" PRId64 ",%" PRId64 ") B(%" PRId64 ",%" PRId64
        ") %s k=%" PRId64 " ldd=%" PRId64 " batch=%" PRId64 " alpha=%s beta=%s%s%s%s%s%s%s%s",
        m, columns(), name_of(d.type), a.row_stride, a.k_stride, b.row_stride, b.k_stride, name_of(type_ab),
        k, d.ld, batch, general(alpha + 0.0).text(), general(beta).text(),
        bias.along == BiasAlong::None ? "" : " bias", activation == Activation::None ? "" : " activation",
        is_gated() ? " gated" : "", aux.ptr ? " aux" : "",
        groups.contiguous() ? " rows=offsets"
        : groups.masked()   ? " rows=counts"
        : groups.sizes      ? " k=offsets"
                            : "",
        triangle == Triangle::Whole   ? ""
        : triangle == Triangle::Upper ? " upper"
                                      : " lower",
        mirrored ? " mirrored" : "");
}

}  // namespace hg
