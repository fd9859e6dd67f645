#include "arch/host/passes/gate.hpp"
#include "src/base/convert.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t elements_at_once = 256;  // elements of a row of D's gradient that are computed at a time

// activation(x), and its derivative there.
struct Slope {
    float value, derivative;
};

// Further from 0 the activations are x and 0 in fp32, and their derivatives 1 and 0. NaN stays NaN.
float saturated(float x)
{
    constexpr float far = 128;
    return x > far ? far : x < -far ? -far : x;
}

// Minus infinity times 0 would be NaN.
float finite_below(float x) { return x < -3.4028234664e38f ? -3.4028234664e38f : x; }

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

Slope slope_of_silu(float x, float slope)
{
    const float steep = saturated(slope * x), s = sigmoid(steep);
    return {finite_below(x) * s, s * (1.0f + steep * (1.0f - s))};
}

Slope slope_of_gelu_tanh(float x)
{
    constexpr float twice_sqrt_2_by_pi = 1.5957691216f, cubic = 0.044715f * twice_sqrt_2_by_pi;
    const float near = saturated(x), square = near * near;
    const float s = sigmoid(near * (twice_sqrt_2_by_pi + cubic * square));
    const float inner = near * (twice_sqrt_2_by_pi + 3.0f * cubic * square);
    return {finite_below(x) * s, s * (1.0f + inner * (1.0f - s))};
}

Slope slope_of_gelu_erf(float x)
{
    constexpr float sqrt_half = 0.70710678119f, by_sqrt_2_pi = 0.39894228040f;
    const float near = saturated(x), below = 0.5f * std::erfc(-sqrt_half * near);
    return {finite_below(x) * below, below + near * by_sqrt_2_pi * std::exp(-0.5f * near * near)};
}

Slope slope_of(Activation activation, float x, float slope)
{
    switch (activation) {
    case Activation::Relu: return {x <= 0.0f ? 0.0f : x, x <= 0.0f ? 0.0f : 1.0f};
    case Activation::GeluTanh: return slope_of_gelu_tanh(x);
    case Activation::GeluErf: return slope_of_gelu_erf(x);
    case Activation::Silu: return slope_of_silu(x, slope);
    default: return {x, 1.0f};
    }
}

// Replaces a gate and its up element by their gradients. What is 0 because of a limit, or of ReLU, is 0
// whatever it is multiplied by.
void differentiate(const GateGradient& what, float& gate, float& other, float gradient)
{
    const float limit = what.gate.limit;
    const float up = (other > limit ? limit : other < -limit ? -limit : other) + what.gate.offset;
    const Slope at = slope_of(what.activation, gate > limit ? limit : gate, what.gate.slope);
    const bool is_flat = gate > limit || (what.activation == Activation::Relu && at.derivative == 0.0f);
    gate = is_flat ? 0.0f : gradient * up * at.derivative;
    other = std::fabs(other) > limit ? 0.0f : gradient * at.value;
}

// Elements of row i from j on, whose gates lie together, or alternate with up elements.
void differentiate_run(const GateGradient& what, int64_t i, int64_t j, int64_t count)
{
    float gates[elements_at_once], others[elements_at_once], gradient[elements_at_once];
    const int64_t apart = what.gate.block, step = apart == 1 ? 2 : 1,
                  from = i * what.ld_product + what.place(j), to = i * what.ld_of_product + what.place(j);
    to_float(what.type_product, what.product, from, step, count, gates);
    to_float(what.type_product, what.product, from + apart, step, count, others);
    to_float(what.type_of_d, what.of_d, i * what.ld_of_d + j, 1, count, gradient);
    for (int64_t e = 0; e < count; ++e)
        differentiate(what, gates[e], others[e], gradient[e]);
    from_float(what.type_of_product, gates, count, what.of_product, to, step);
    from_float(what.type_of_product, others, count, what.of_product, to + apart, step);
}

}  // namespace

void differentiate_gates(Pool& pool, const GateGradient& what, int threads)
{
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 12;
    const auto parts = std::clamp<int64_t>(what.rows * what.columns / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), what.rows, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int64_t j = 0, count = 0; j < what.columns; j += count) {
                const int64_t block = what.gate.block,
                              together = block == 1 ? what.columns : block - j % block;
                count = std::min({elements_at_once, what.columns - j, together});
                differentiate_run(what, i, j, count);
            }
    });
}

}  // namespace hg
