// The gradient of a gated result: from that of D to that of the product. Each thread reads gates, their up
// elements and what D's gradient has for them, and writes both gradients.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/gate/config.hpp"
#include "arch/common/ptx/math.cuh"

#include <cstdint>

namespace hg {

// activation(x), and a gradient times its derivative at x.
struct Activated {
    float value, gradient;
};

// Further from 0 the activations are x and 0 in fp32, and their derivatives 1 and 0. NaN stays NaN.
__device__ inline float saturated(float x)
{
    constexpr float far = 128;
    return ptx::max_nan(ptx::min_nan(x, far), -far);
}

__device__ inline float sigmoid(float x)
{
    return ptx::rcp_approx_ftz(1.0f + ptx::ex2_approx_ftz(-log2_e * x));
}

__device__ inline Activated differentiate_relu(float x, float gradient)
{
    return {relu(x), x <= 0.0f ? 0.0f : gradient};
}

__device__ inline Activated differentiate_silu(float x, float slope, float gradient)
{
    const float steep = saturated(slope * x), s = sigmoid(steep);
    return {finite_below(x) * s, gradient * (s * fmaf(steep, 1.0f - s, 1.0f))};
}

__device__ inline Activated differentiate_gelu_tanh(float x, float gradient)
{
    constexpr float twice_sqrt_2_by_pi = 1.5957691216f, cubic = 0.044715f * twice_sqrt_2_by_pi;
    const float near = saturated(x), square = near * near;
    const float s = sigmoid(near * fmaf(cubic, square, twice_sqrt_2_by_pi));
    const float inner = near * fmaf(3.0f * cubic, square, twice_sqrt_2_by_pi);
    return {finite_below(x) * s, gradient * (s * fmaf(inner, 1.0f - s, 1.0f))};
}

__device__ inline Activated differentiate_gelu_erf(float x, float gradient)
{
    constexpr float sqrt_half = 0.7071067812f, by_sqrt_2_pi = 0.3989422804f;
    const float near = saturated(x), below = 0.5f * erfcf(-sqrt_half * near);
    const float density = by_sqrt_2_pi * ptx::ex2_approx_ftz(-0.5f * log2_e * near * near);
    return {finite_below(x) * below, gradient * fmaf(near, density, below)};
}

// Calls use() with the activation as a function of x and a gradient.
template <typename Use>
__device__ inline void with_derivative(Activation activation, float slope, Use use)
{
    if (activation == Activation::Silu)
        use([=](float x, float gradient) { return differentiate_silu(x, slope, gradient); });
    else if (activation == Activation::GeluTanh)
        use([](float x, float gradient) { return differentiate_gelu_tanh(x, gradient); });
    else if (activation == Activation::GeluErf)
        use([](float x, float gradient) { return differentiate_gelu_erf(x, gradient); });
    else if (activation == Activation::Relu)
        use([](float x, float gradient) { return differentiate_relu(x, gradient); });
    else
        use([](float x, float gradient) { return Activated{x, gradient}; });
}

// Replaces a gate and its up element by their gradients.
template <typename Derivative>
__device__ inline void differentiate(float& gate, float& other, float gradient, const Gate& g,
                                     Derivative derivative)
{
    const float up = ptx::max_nan(ptx::min_nan(other, g.limit), -g.limit) + g.offset;
    const Activated activated = derivative(ptx::min_nan(gate, g.limit), gradient * up);
    gate = gate > g.limit ? 0.0f : activated.gradient;
    other = fabsf(other) > g.limit ? 0.0f : gradient * activated.value;
}

// Eight gates and eight up elements, where the first gate is element `place` of a matrix.
__device__ inline void load_gates(const GateGradientParams& p, int64_t place, float (&gates)[8],
                                  float (&others)[8])
{
    constexpr Type usual = Type::BF16;
    const int64_t bytes = device_bytes_of(p.type_product), apart = p.alternate ? 8 : p.block.value;
    const char* const from = static_cast<const char*>(p.product) + place * bytes;
    float low[8], high[8];
    load_vector<usual>(low, from, p.type_product);
    load_vector<usual>(high, from + apart * bytes, p.type_product);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        gates[e] = !p.alternate ? low[e] : e < 4 ? low[2 * e % 8] : high[2 * e % 8];
        others[e] = !p.alternate ? high[e] : e < 4 ? low[(2 * e + 1) % 8] : high[(2 * e + 1) % 8];
    }
}

__device__ inline void store_gates(const GateGradientParams& p, int64_t place, const float (&gates)[8],
                                   const float (&others)[8])
{
    constexpr Type usual = Type::BF16;
    const int64_t bytes = device_bytes_of(p.type_of_product), apart = p.alternate ? 8 : p.block.value;
    char* const to = static_cast<char*>(p.of_product) + place * bytes;
    float low[8], high[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        low[e] = !p.alternate ? gates[e] : e % 2 == 0 ? gates[e / 2] : others[e / 2];
        high[e] = !p.alternate ? others[e] : e % 2 == 0 ? gates[4 + e / 2] : others[4 + e / 2];
    }
    store_vector<usual>(low, to, p.type_of_product);
    store_vector<usual>(high, to + apart * bytes, p.type_of_product);
}

// Row i, and of D columns from j on, whose gates begin at column `at`.
__device__ inline void differentiate_vector(const GateGradientParams& p, int64_t i, int32_t j, int64_t at)
{
    constexpr Type usual = Type::BF16;
    float gates[8], others[8], gradient[8];
    load_gates(p, i * p.ld_product + at, gates, others);
    load_vector<usual>(
        gradient, static_cast<const char*>(p.of_d) + (i * p.ld_of_d + j) * device_bytes_of(p.type_of_d),
        p.type_of_d);
    with_derivative(p.activation, p.gate.slope, [&](auto derivative) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            differentiate(gates[e], others[e], gradient[e], p.gate, derivative);
    });
    store_gates(p, i * p.ld_of_product + at, gates, others);
}

__device__ inline void differentiate_element(const GateGradientParams& p, int64_t i, int32_t j, int64_t at)
{
    const int64_t from = i * p.ld_product + at, to = i * p.ld_of_product + at;
    float gate = load_element(p.product, from, p.type_product),
          other = load_element(p.product, from + p.block.value, p.type_product);
    const float gradient = load_element(p.of_d, i * p.ld_of_d + j, p.type_of_d);
    with_derivative(p.activation, p.gate.slope,
                    [&](auto derivative) { differentiate(gate, other, gradient, p.gate, derivative); });
    store_element(gate, p.of_product, to, p.type_of_product);
    store_element(other, p.of_product, to + p.block.value, p.type_of_product);
}

// The whole kernel.
__device__ inline void differentiate_gates(const GateGradientParams& p)
{
    const auto threads = static_cast<int32_t>(gridDim.x) * gate_threads;
#pragma unroll 1
    for (int64_t unit = blockIdx.x * gate_threads + threadIdx.x; unit < p.units; unit += threads) {
        const int32_t i = p.units_of_row.quotient(static_cast<int32_t>(unit));
        const int32_t j = (static_cast<int32_t>(unit) - i * p.units_of_row.value) * (p.vectors ? 8 : 1);
        const int64_t at = j + int64_t{p.block.quotient(j)} * p.block.value;
        if (p.vectors)
            differentiate_vector(p, i, j, at);
        else
            differentiate_element(p, i, j, at);
    }
}

}  // namespace hg
