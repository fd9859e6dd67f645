#include "arch/host/passes/gate.hpp"

#include "arch/host/epilogue.hpp"
#include "src/base/convert.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hg {
namespace {

constexpr int64_t chunk = 256;  // elements of a row of D that are gated at a time

// NaN stays NaN.
float at_most(float x, float limit) { return x > limit ? limit : x; }
float at_least(float x, float limit) { return x < limit ? limit : x; }

void gate_values(const GatePass& pass, int64_t count, float* gates, const float* others)
{
    const float limit = pass.gate.limit;
    float clamped[chunk];
    for (int64_t e = 0; e < count; ++e) {
        clamped[e] = at_least(at_most(others[e], limit), -limit);
        gates[e] = at_most(gates[e], limit);
    }
    activate(pass.activation, gates, count, pass.gate.slope);
    for (int64_t e = 0; e < count; ++e)
        gates[e] *= clamped[e] + pass.gate.offset;
}

// Elements of row i from j on.
void gate_run(const GatePass& pass, int64_t z, int64_t i, int64_t j, int64_t count)
{
    const float* const line = pass.sums + z * pass.problem_stride + i * pass.ld;
    float gates[chunk], others[chunk];
    for (int64_t e = 0; e < count; ++e) {
        gates[e] = line[pass.place(j + e)];
        others[e] = line[pass.place(j + e) + pass.apart];
    }
    if (pass.aux.ptr)
        for (int64_t e = 0; e < count; ++e) {
            const int64_t to = z * pass.aux.batch_stride + i * pass.aux.ld + pass.place(j + e);
            from_float(pass.aux.type, gates + e, 1, pass.aux.ptr, to, 1);
            from_float(pass.aux.type, others + e, 1, pass.aux.ptr, to + pass.gate.block, 1);
        }
    gate_values(pass, count, gates, others);
    int64_t first;
    void* const d = base(pass.d, z, first);
    from_float(pass.d.type, gates, count, d, first + i * pass.d.ld + j, 1);
}

// activation(x), and its derivative there.
struct Slope {
    float value, derivative;
};

// Further from 0 the activations are x and 0 in fp32, and their derivatives 1 and 0. NaN stays NaN.
float saturated(float x)
{
    constexpr float far = 128;
    return at_least(at_most(x, far), -far);
}

// Minus infinity times 0 would be NaN.
float finite_below(float x) { return at_least(x, std::numeric_limits<float>::lowest()); }

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
    const float up = at_least(at_most(other, limit), -limit) + what.gate.offset;
    const Slope at = slope_of(what.activation, at_most(gate, limit), what.gate.slope);
    const bool is_flat = gate > limit || (what.activation == Activation::Relu && at.derivative == 0.0f);
    gate = is_flat ? 0.0f : gradient * up * at.derivative;
    other = std::fabs(other) > limit ? 0.0f : gradient * at.value;
}

// Elements of row i from j on, whose gates lie together, or alternate with up elements.
void differentiate_run(const GateGradient& what, int64_t i, int64_t j, int64_t count)
{
    float gates[chunk], others[chunk], gradient[chunk];
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

void apply_gates(Pool& pool, const GatePass& pass, int threads)
{
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 13;
    const int64_t lines = pass.batch * pass.rows;
    const auto parts = std::clamp<int64_t>(lines * pass.columns / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), lines, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line)
            for (int64_t j = 0; j < pass.columns; j += chunk)
                gate_run(pass, line / pass.rows, line % pass.rows, j, std::min(chunk, pass.columns - j));
    });
}

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
                count = std::min({chunk, what.columns - j, together});
                differentiate_run(what, i, j, count);
            }
    });
}

}  // namespace hg
