#include "gate_gradient_reference.hpp"

#include <algorithm>
#include <cmath>

namespace hg::test {
namespace {

// Of fp32: the relative error of one rounding, and what may be flushed to 0.
constexpr double one_rounding = 0x1p-24, flushed = 0x1p-126;
// Relative errors of a power of e: 2^y is within two units in the last place, and y = x * log2(e) has the
// errors of the factor and of the product.
constexpr double error_of_power = 0x1p-22, error_of_exponent = 2 * one_rounding;
constexpr double second_order = 1.01;  // bounds are computed from the exact values

// Further from 0 the activations are x and 0 in float64 too, and their derivatives 1 and 0.
double saturated_at(double x, double far) { return x > far ? far : x < -far ? -far : x; }

// An activation and its derivative.
struct Activated {
    Estimate value, derivative;
};

// 1 / (1 + e^-u), and 1 minus that, which is computed from it.
struct Sigmoid {
    Estimate s, rest;
};

// Of a u with a relative error.
Sigmoid sigmoid(double u, double error_of_u)
{
    const double s = u < 0 ? std::exp(u) / (1 + std::exp(u)) : 1 / (1 + std::exp(-u)),
                 rest = 1 / (1 + std::exp(u)), power = std::exp(-u);
    const double of_power = std::fabs(u) * (error_of_u + error_of_exponent) + error_of_power;
    // So small a power changes no 1, whose reciprocal is 1 on every device. So large a one is infinite, or
    // its reciprocal is flushed. Else the sum is rounded, and the reciprocal is within a unit in the last
    // place.
    if (power * (1 + 2 * of_power) < 0x1p-25)
        return {{s, rest}, {rest, rest}};
    if (s < 2 * flushed)
        return {{s, s * second_order}, {rest, s * second_order + one_rounding}};
    const double error = second_order * (s * rest * of_power + s * 3 * one_rounding);
    return {{s, error}, {rest, error + one_rounding * rest}};
}

// x * s and s * (1 + inner * (1 - s)), where `inner` is x times the derivative of the sigmoid's argument.
Activated logistic(double x, const Sigmoid& g, double inner, double error_of_inner)
{
    const double s = g.s.value, rest = g.rest.value, slope = inner * rest, derivative = s * (1 + slope);
    const double of_slope = std::fabs(inner) * g.rest.error + std::fabs(slope) * error_of_inner +
                            2 * one_rounding * (1 + std::fabs(slope));
    const double error = std::fabs(1 + slope) * g.s.error + s * of_slope + g.s.error * of_slope +
                         one_rounding * std::fabs(derivative);
    if (x == -INFINITY)
        return {{0, 0}, {derivative, second_order * error}};
    return {{x * s, std::fabs(x) * g.s.error + one_rounding * std::fabs(x * s) + 0x1p-149},
            {derivative, second_order * error}};
}

Activated silu_of(double x, double slope)
{
    const double u = saturated_at(slope * x, 1000);
    return logistic(x, sigmoid(u, one_rounding), u, one_rounding);
}

// The tanh is a sigmoid of twice its argument. Five and six operations with a few constants.
Activated gelu_tanh_of(double x)
{
    const double linear = 2 * std::sqrt(2 / M_PI), cubic = 0.044715 * linear, near = saturated_at(x, 300);
    const double u = near * (linear + cubic * near * near),
                 inner = near * (linear + 3 * cubic * near * near);
    return logistic(x, sigmoid(u, 7 * one_rounding), inner, 8 * one_rounding);
}

// The part of the normal distribution below x, plus x times its density. erfc is within four units in the
// last place.
Activated gelu_erf_of(double x)
{
    const double near = saturated_at(x, 300), below = 0.5 * std::erfc(-near / std::sqrt(2.0)),
                 density = std::exp(-near * near / 2) / std::sqrt(2 * M_PI);
    const double of_below = std::fabs(near) * density * 2 * one_rounding + 8 * one_rounding * below +
                            std::min(below, flushed) + 0x1p-147;
    const double of_density = density * (near * near / 2 * (2 * one_rounding + error_of_exponent) +
                                         error_of_power + 2 * one_rounding) +
                              std::min(density, flushed);
    const double derivative = below + near * density;
    const double error = of_below + std::fabs(near) * (of_density + one_rounding * density) +
                         one_rounding * std::fabs(derivative);
    if (x == -INFINITY)
        return {{0, 0}, {derivative, second_order * error}};
    return {{x * below,
             second_order * (std::fabs(x) * of_below + one_rounding * std::fabs(x * below)) + 0x1p-149},
            {derivative, second_order * error}};
}

Activated differentiate(hgemm_activation_t activation, double slope, double x)
{
    switch (activation) {
    case HGEMM_ACTIVATION_NONE: return {{x, 0}, {1, 0}};
    case HGEMM_ACTIVATION_RELU: return {{x <= 0 ? 0 : x, 0}, {x <= 0 ? 0.0 : 1.0, 0}};
    case HGEMM_ACTIVATION_GELU_TANH: return gelu_tanh_of(x);
    case HGEMM_ACTIVATION_GELU_ERF: return gelu_erf_of(x);
    case HGEMM_ACTIVATION_SILU: return silu_of(x, slope);
    }
    return {};
}

// factor * a * b, rounded so many times.
Estimate product_of(double factor, const Estimate& a, const Estimate& b, int roundings)
{
    const double value = factor * a.value * b.value;
    return {value, std::fabs(factor) * (std::fabs(a.value) * b.error + std::fabs(b.value) * a.error +
                                        a.error * b.error) +
                       second_order * roundings * one_rounding * std::fabs(value) + 0x1p-147};
}

}  // namespace

GradientOfGate differentiate_gate(const hgemm_gate_t& numbers, hgemm_activation_t activation, double gate,
                                  double up, double of_d)
{
    const double limit = numbers.limit != 0 ? numbers.limit : INFINITY;
    const Activated activated =
        differentiate(activation, numbers.slope != 0 ? numbers.slope : 1, gate > limit ? limit : gate);
    const double sum = (up > limit ? limit : up < -limit ? -limit : up) + numbers.offset;
    const bool is_flat = gate > limit || (activation == HGEMM_ACTIVATION_RELU && gate <= 0);
    GradientOfGate gradient{};
    if (!is_flat)
        gradient.of_gate =
            product_of(of_d, {sum, numbers.offset != 0 ? one_rounding * std::fabs(sum) : 0.0},
                       activated.derivative, 2);
    if (!(std::fabs(up) > limit))
        gradient.of_up = product_of(of_d, activated.value, {1, 0}, 1);
    return gradient;
}

}  // namespace hg::test
