#include "model.hpp"

#include "src/tools/support/number.hpp"

#include <algorithm>
#include <cmath>

namespace hg::test {
namespace {

int64_t up_to_eight(int64_t value) { return (value + 7) / 8 * 8; }
float fp32(double value) { return static_cast<float>(value); }

const char* element(const void* base, hgemm_type_t type, int64_t offset)
{
    return static_cast<const char*>(base) + offset * static_cast<int64_t>(bytes_of(type));
}
char* element(void* base, hgemm_type_t type, int64_t offset)
{
    return static_cast<char*>(base) + offset * static_cast<int64_t>(bytes_of(type));
}

// Half way between two neighbours, the one further from zero.
double away_from_zero(hgemm_type_t type, double value)
{
    const double inner = truncate_to(type, value), nearest = round_to(type, value);
    return nearest == inner && value != inner ? round_to(type, value + (value - inner) * 0x1p-20) : nearest;
}

}  // namespace

std::span<const char* const> defect_names()
{
    static constexpr const char* names[] = {
#define DEFECT(name) #name,
        HGEMM_DEFECTS(DEFECT)
#undef DEFECT
    };
    return names;
}

bool Model::multiplies(const hgemm_args_t& g) const
{
    return g.k > 0 && (g.alpha != 0 || is(Defect::ab_read_when_alpha_is_0) || is(Defect::alpha_ignored));
}

// Does the call itself say that C stays what it is?
bool Model::leaves_c_alone(const hgemm_args_t& g) const
{
    return !multiplies(g) && g.beta == 1 && !g.beta_device && g.c == g.d && g.c_array == g.d_array &&
           g.bias_mode == HGEMM_BIAS_NONE && g.activation == HGEMM_ACTIVATION_NONE && !g.aux &&
           !is(Defect::sign_of_zero_lost);
}

hgemm_status_t Model::run(const hgemm_args_t& args)
{
    ++runs_;
    hgemm_args_t g = args;
    if (g.alpha_device) {
        g.alpha = is(Defect::scalars_in_memory_ignored) ? 1 : *g.alpha_device;
        g.beta = is(Defect::scalars_in_memory_ignored) ? 0 : *g.beta_device;
    }
    if (g.m == 0 || g.n == 0 || (g.k == 0 && is(Defect::empty_product_not_stored)))
        return HGEMM_STATUS_SUCCESS;
    if (leaves_c_alone(g))
        return HGEMM_STATUS_SUCCESS;
    for (int64_t z = 0; z < g.batch_count; ++z) {
        const Problem problem = locate(g, z);
        store_results(g, problem, sums(g, problem));
        if (is(Defect::operand_written) && g.k > 0)
            store(g.type_ab, const_cast<char*>(problem.a), 0);
    }
    return HGEMM_STATUS_SUCCESS;
}

Model::Problem Model::locate(const hgemm_args_t& g, int64_t z) const
{
    const int64_t za = is(Defect::batch_stride_of_a_ignored) ? 0 : z;
    const int64_t stride_a =
        is(Defect::negative_stride_taken_as_positive) ? std::abs(g.stride_a) : g.stride_a;
    Problem p{element(g.a, g.type_ab, za * stride_a),
              element(g.b, g.type_ab, z * g.stride_b),
              element(g.c, g.type_c, z * g.stride_c),
              element(g.d, g.type_d, z * g.stride_d),
              g.aux ? element(g.aux, g.type_d, z * g.stride_aux) : nullptr,
              element(g.bias, g.bias_type, z * g.stride_bias)};
    if (g.d_array) {
        p.a = static_cast<const char*>(g.a_array[is(Defect::first_pointer_of_array_for_all) ? 0 : z]);
        p.b = static_cast<const char*>(g.b_array[z]);
        p.c = static_cast<const char*>(g.c_array[z]);
        p.d = static_cast<char*>(g.d_array[z]);
    }
    if (is(Defect::c_taken_from_d) && g.type_c == g.type_d && g.ldc == g.ldd)
        p.c = p.d;
    return p;
}

Model::Strides Model::strides_a(const hgemm_args_t& g) const
{
    const int64_t lda = g.lda + (is(Defect::lda_off_by_one) ? 1 : 0);
    bool by_rows = (g.layout == HGEMM_ROW_MAJOR) == (g.transa == HGEMM_NO_TRANS);
    if (is(Defect::square_a_not_transposed) && g.m == g.k)
        by_rows = true;
    return by_rows ? Strides{lda, 1} : Strides{1, lda};
}

void Model::load_operands(const hgemm_args_t& g, const Problem& problem, Dense& a, Dense& b) const
{
    const bool b_by_rows = (g.layout == HGEMM_ROW_MAJOR) == (g.transb == HGEMM_NO_TRANS);
    const Strides sa = strides_a(g), sb = b_by_rows ? Strides{g.ldb, 1} : Strides{1, g.ldb};
    const double smallest = std::ldexp(1.0, format_of(g.type_ab).min_exponent);
    const auto fill = [&](Dense& matrix, const char* base, Strides s) {
        for (int64_t i = 0; i < matrix.rows; ++i)
            for (int64_t j = 0; j < matrix.columns; ++j) {
                const double value = load(g.type_ab, element(base, g.type_ab, i * s.row + j * s.column));
                const bool flushed = is(Defect::subnormal_operands_flushed) && std::fabs(value) < smallest;
                matrix(i, j) = flushed ? 0 : value;
            }
    };
    fill(a, problem.a, sa);
    fill(b, problem.b, sb);
}

Dense Model::sums(const hgemm_args_t& g, const Problem& problem) const
{
    Dense sum(g.m, g.n);
    if (!multiplies(g))
        return sum;
    const int64_t k = is(Defect::k_read_in_eights) ? up_to_eight(g.k) : g.k;
    Dense a(g.m, k), b(k, g.n);
    load_operands(g, problem, a, b);
    for (int64_t p = 0; p < k; ++p)
        add(g, a, b, p, sum);
    if (is(Defect::one_product_of_one_element_lost))
        sum(g.m / 2, g.n / 2) -= a(g.m / 2, k / 2) * b(k / 2, g.n / 2);
    return sum;
}

// The p-th product of every sum.
void Model::add(const hgemm_args_t& g, const Dense& a, const Dense& b, int64_t p, Dense& sum) const
{
    const int64_t k = a.columns;
    if ((is(Defect::last_product_lost) && p == k - 1) ||
        (is(Defect::k_step_lost) && p / 16 == 2 && k > 100) ||
        (is(Defect::odd_k_tail_lost) && k > 8 && p >= k / 8 * 8))
        return;
    const bool narrow16 = is(Defect::sums_in_fp16) && p % 16 == 15,
               narrowb = is(Defect::sums_in_bf16) && p % 16 == 15;
    for (int64_t i = 0; i < g.m; ++i) {
        const bool backwards = (is(Defect::order_of_sum_changes_between_runs) && runs_ % 2 == 0) ||
                               (is(Defect::order_of_sum_depends_on_row) && i >= 128) ||
                               (is(Defect::order_of_sum_depends_on_n) && g.n < 64);
        const bool stale = is(Defect::tile_from_stale_stage) && i < 64 && g.m > 64 && p / 32 == 1;
        const int64_t q = backwards ? k - 1 - p : stale ? p - 32 : p;
        double* row = &sum(i, 0);
        const double left = a(i, q);
        const double* right = &b.values[static_cast<size_t>(q * g.n)];
        for (int64_t j = 0; j < g.n; ++j)
            row[j] = fp32(row[j] + left * right[j]);
        for (int64_t j = 0; (narrow16 || narrowb) && j < g.n; ++j)
            row[j] = round_to(narrow16 ? HGEMM_F16 : HGEMM_BF16, row[j]);
    }
}

void Model::store_results(const hgemm_args_t& g, const Problem& problem, const Dense& sum) const
{
    const bool by_rows = g.layout == HGEMM_ROW_MAJOR;
    const float alpha = is(Defect::alpha_ignored) ? 1 : g.alpha;
    const float beta = is(Defect::beta_taken_as_1) && g.beta != 0 ? 1 : g.beta;
    for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) {
            if (is(Defect::tile_not_written) && g.m > 64 && g.n > 64 && i / 64 == g.m / 64 &&
                j / 64 == g.n / 64)
                continue;
            const int64_t line = by_rows ? i : j, position = by_rows ? j : i;
            // What is added to -0 keeps its sign.
            const float none = beta == 0 || is(Defect::sign_of_zero_lost) ? 0.0f : -0.0f;
            float value = multiplies(g) ? fp32(alpha * sum(i, j)) : none;
            if (beta != 0 || is(Defect::c_read_when_beta_is_0))
                value += fp32(beta * load(g.type_c, element(problem.c, g.type_c, line * g.ldc + position)));
            float added = -0.0f;
            if (g.bias_mode != HGEMM_BIAS_NONE) {
                const bool along_m =
                    (g.bias_mode == HGEMM_BIAS_M) != (is(Defect::bias_along_the_other_side) && g.m == g.n);
                const int64_t index = (along_m ? i : j) + (is(Defect::bias_off_by_one) ? 1 : 0);
                added = fp32(load(g.bias_type, element(problem.bias, g.bias_type, index)));
            }
            const auto activated = [&](float x) {
                if (is(Defect::relu_swallows_nan) && g.activation == HGEMM_ACTIVATION_RELU)
                    return x > 0 ? x : 0;
                if (is(Defect::activation_of_minus_infinity_is_nan) && x == -INFINITY &&
                    g.activation > HGEMM_ACTIVATION_RELU)
                    return NAN;
                if (is(Defect::gelu_cancels) && g.activation == HGEMM_ACTIVATION_GELU_ERF)
                    return 0.5f * x * (1 + std::erf(std::sqrt(0.5f) * x));
                return fp32(activate(g.activation, x));
            };
            const float stored =
                is(Defect::activation_before_bias) ? activated(value) + added : activated(value + added);
            put(g.type_d, element(problem.d, g.type_d, line * g.ldd + position), stored);
            if (g.aux)
                put(g.type_d, element(problem.aux, g.type_d, line * g.ldaux + position),
                    is(Defect::aux_after_activation) ? stored : value + added);
        }
    const int64_t lines = by_rows ? g.m : g.n, length = by_rows ? g.n : g.m;
    const int64_t end = is(Defect::element_behind_row_written) ? length + 1
                        : is(Defect::rows_stored_in_eights)    ? up_to_eight(length)
                                                               : length;
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t position = length; position < end; ++position)
            put(g.type_d, element(problem.d, g.type_d, line * g.ldd + position), 0);
}

double Model::rounded(hgemm_type_t type, double value) const
{
    switch (defect_) {
    case Defect::result_truncated: return truncate_to(type, value);
    case Defect::result_rounded_through_fp16:
        return std::fabs(value) < 60000 ? round_to(HGEMM_F16, value) : value;
    case Defect::ties_away_from_zero: return away_from_zero(type, value);
    default: return value;
    }
}

void Model::put(hgemm_type_t type, void* element, double value) const
{
    const Format& f = format_of(type);
    double result = round_to(type, rounded(type, value));
    if (is(Defect::overflow_saturates) && std::isinf(result) && std::isfinite(value))
        result = std::copysign(f.largest(), value);
    if (is(Defect::subnormal_results_flushed) && std::fabs(result) < std::ldexp(1.0, f.min_exponent))
        result = 0;
    store(type, element, result);
}

}  // namespace hg::test
