// What becomes of sums before TMA stores them as it stores plain ones: a bias, an activation.
#pragma once

#include "arch/sm90/boxes.cuh"

namespace hg::sm90 {

// Of a tile, before its product: by the consumer's threads, once all are done with the one before.
template <Config C>
__device__ inline void stage_bias(const Params& p, float* staged, const Position& at, int first_block)
{
    const auto bias = TileBias::of<C>(p.output, p.swapped, at);
    const int first = bias.along_y ? 0 : first_block * 64;
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < (bias.along_y ? C.y : C.blocks() * 64); i += 128)
        staged[i] = bias.load(first + i);
}

// The function's code is there once for so many sums, after which all of them move on by as many: registers
// cannot be counted through.
template <int Count, typename Function>
__device__ inline void for_each_in_turn(float (&sums)[Count], Function function)
{
    static_assert(Count % sums_in_turn == 0);
#pragma unroll 1
    for (int round = 0; round < Count / sums_in_turn; ++round) {
        float done[sums_in_turn];
#pragma unroll
        for (int i = 0; i < sums_in_turn; ++i)
            done[i] = function(sums[i]);
#pragma unroll
        for (int i = 0; i < Count - sums_in_turn; ++i)
            sums[i] = sums[i + sums_in_turn];
#pragma unroll
        for (int i = 0; i < sums_in_turn; ++i)
            sums[Count - sums_in_turn + i] = done[i];
    }
}

// alpha times the sums, the bias, which stage_bias() has left, and the activation.
template <Config C>
__device__ inline void finish_in_place(const Params& p, float alpha, Accumulator<C>& acc, const float* bias,
                                       const Block& at)
{
    auto& sums = reinterpret_cast<float(&)[sums_a_thread(C)]>(acc);
    for_each_of(sums, [&](float sum) { return __fmul_rn(alpha, sum); });
    if (p.output.bias_along != BiasAlong::None) {
        const bool along_y = is_bias_along_y(p.output, p.swapped);
        ptx::bar_sync(1 + at.consumer, 128);
#pragma unroll
        for (int block = 0; block < C.blocks(); ++block)
            add_bias<C.y>(acc[block], bias + (along_y ? 0 : block * 64 + at.warp * 16), along_y);
    }
    if (p.output.activation == Activation::Relu)
        for_each_of(sums, [](float x) { return relu(x); });
    if constexpr (takes_turns(C)) {
        if (p.output.activation == Activation::GeluTanh)
            for_each_in_turn(sums, [](float x) { return gelu_tanh(x); });
        else if (p.output.activation == Activation::Silu)
            for_each_in_turn(sums, [](float x) { return silu(x); });
    }
}

}  // namespace hg::sm90
