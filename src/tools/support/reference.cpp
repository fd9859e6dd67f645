#include "src/tools/support/reference.hpp"

#include "src/tools/support/number.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace hg::test {
namespace {

// The loader picks a clone before a thread sanitizer, which would instrument the choice, has started.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORISED
#endif

// One row of the result, as running sums over k.
struct Row {
    explicit Row(size_t n) : sum(n), low(n), high(n), magnitude(n), largest(n) {}
    std::vector<double> sum, low, high;      // prefix sums and their range
    std::vector<double> magnitude, largest;  // of the products: sum and maximum
};

VECTORISED void add_product(double a, const double* b, size_t n, double* sum, double* magnitude,
                            double* largest)
{
    for (size_t j = 0; j < n; ++j) {
        const double product = a * b[j];
        const double size = std::fabs(product);
        sum[j] += product;
        magnitude[j] += size;
        largest[j] = size > largest[j] ? size : largest[j];
    }
}

VECTORISED void end_step(size_t n, const double* sum, double* low, double* high)
{
    for (size_t j = 0; j < n; ++j) {
        low[j] = sum[j] < low[j] ? sum[j] : low[j];
        high[j] = sum[j] > high[j] ? sum[j] : high[j];
    }
}

double tensor_core_error(const Arithmetic& arithmetic, int64_t k, double accumulator, double product)
{
    const auto steps = static_cast<double>((k + arithmetic.k_step - 1) / arithmetic.k_step);
    const double terms = arithmetic.k_step + 1;
    const double largest = std::max(accumulator, product);
    return steps * (terms * std::ldexp(largest, -arithmetic.fraction) + 1.5 * 0x1p-23 * accumulator +
                    terms * 0x1p-149);
}

void multiply_row(const Dense& a, const Dense& b, const Arithmetic& arithmetic, int64_t i, Product& out)
{
    const auto n = static_cast<size_t>(b.columns);
    const int64_t k = a.columns;
    const int64_t step = arithmetic.k_step > 0 ? arithmetic.k_step : k;
    Row row(n);
    for (int64_t p = 0; p < k; ++p) {
        add_product(a(i, p), &b.values[static_cast<size_t>(p) * n], n, row.sum.data(), row.magnitude.data(),
                    row.largest.data());
        if ((p + 1) % step == 0 || p + 1 == k)
            end_step(n, row.sum.data(), row.low.data(), row.high.data());
    }
    // Errors of errors: the computed sums that a rounding is relative to differ a little from the exact.
    constexpr double second_order = 1.01;
    for (size_t j = 0; j < n; ++j) {
        const auto column = static_cast<int64_t>(j);
        out.sum(i, column) = row.sum[j];
        out.error(i, column) =
            second_order * (arithmetic.k_step > 0
                                ? tensor_core_error(arithmetic, k, row.high[j] - row.low[j], row.largest[j])
                                : static_cast<double>(k) * (0x1p-24 * row.magnitude[j] + 0x1p-149));
    }
}

}  // namespace

void parallel(int64_t count, int64_t cost_of_one, const std::function<void(int64_t, int64_t)>& work)
{
    constexpr int64_t worth_a_thread = 1 << 20;
    const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    const int64_t parts = std::clamp<int64_t>(count * cost_of_one / worth_a_thread, 1, cores);
    std::vector<std::thread> threads;
    for (int64_t t = 1; t < parts; ++t)
        threads.emplace_back([&, t] { work(count * t / parts, count * (t + 1) / parts); });
    work(0, count / parts);
    for (std::thread& thread : threads)
        thread.join();
}

Product multiply(const Dense& a, const Dense& b, const Arithmetic& arithmetic)
{
    Product out{Dense(a.rows, b.columns), Dense(a.rows, b.columns)};
    parallel(a.rows, a.columns * b.columns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            multiply_row(a, b, arithmetic, i, out);
    });
    return out;
}

double activate(hgemm_activation_t activation, double x)
{
    // What the formulas below tend to; they themselves would take infinity times 0.
    if (x == -INFINITY && activation != HGEMM_ACTIVATION_NONE)
        return 0;
    switch (activation) {
    case HGEMM_ACTIVATION_NONE: return x;
    case HGEMM_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case HGEMM_ACTIVATION_GELU_TANH:
        return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case HGEMM_ACTIVATION_GELU_ERF: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case HGEMM_ACTIVATION_SILU: return x / (1 + std::exp(-x));
    }
    return x;
}

double activated_error(hgemm_activation_t activation, double value, double error)
{
    if (activation == HGEMM_ACTIVATION_NONE || activation == HGEMM_ACTIVATION_RELU)
        return error;
    if (std::isinf(value))
        return 0;
    constexpr double steepest = 1.13;  // no derivative of the three is larger
    const double result = std::fabs(activate(activation, value));
    double spread = steepest * error;
    if (value + error < -2)  // on the left of their minima they only come closer to 0
        spread = std::min(spread, std::fabs(activate(activation, value + error)));
    return spread + 0x1p-21 * std::min(std::fabs(value), result * (1 + value * value)) + 0x1p-118;
}

namespace {

// NaN stays NaN.
double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

Estimate clamped(const Estimate& x, double low, double high)
{
    const double value = clamp(x.value, low, high);
    return {value, std::max(clamp(x.value + x.error, low, high) - value,
                            value - clamp(x.value - x.error, low, high))};
}

Estimate rounded(const Estimate& x)
{
    if (x.error == 0 && static_cast<double>(static_cast<float>(x.value)) == x.value)
        return x;
    return {x.value, x.error + 0x1p-24 * (std::fabs(x.value) + x.error) + 0x1p-150};
}

Estimate activated(hgemm_activation_t activation, double slope, const Estimate& x)
{
    return {activate(activation, slope * x.value) / slope,
            activated_error(activation, slope * x.value, slope * x.error) / slope};
}

}  // namespace

Estimate gated(const hgemm_gate_t& gate, hgemm_activation_t activation, Estimate at_gate, Estimate other)
{
    for (Estimate* const x : {&at_gate, &other})
        if (!std::isfinite(x->value))
            x->error = 0;
    if (gate.limit > 0) {
        at_gate = clamped(at_gate, -INFINITY, gate.limit);
        other = clamped(other, -gate.limit, gate.limit);
    }
    const Estimate factor = activated(activation, gate.slope != 0 ? gate.slope : 1, at_gate);
    if (gate.offset != 0)
        other = rounded({other.value + gate.offset, other.error});
    return rounded({factor.value * other.value, std::fabs(factor.value) * other.error +
                                                    std::fabs(other.value) * factor.error +
                                                    factor.error * other.error});
}

bool matches(hgemm_type_t type, double result, double value, double error)
{
    if (result == value)
        return true;
    if (std::isnan(value))
        return std::isnan(result);
    if (std::isinf(value))
        return result == value;
    return round_to(type, value - error) <= result && result <= round_to(type, value + error);
}

double error_ratio(hgemm_type_t type, double result, double value, double error)
{
    if (!std::isfinite(value) || !std::isfinite(result) || result == value)
        return 0;
    const Format& f = format_of(type);
    return std::fabs(result - value) / (error + f.unit() * (std::fabs(value) + error) + f.smallest() / 2);
}

}  // namespace hg::test
