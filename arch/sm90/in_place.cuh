// What becomes of sums before TMA stores them as it stores plain ones: C, a bias, an activation.
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

// The body's code is there once, for so many sums, after which all of them move on by as many: registers
// cannot be counted through.
template <int Turn, int Count, typename Body>
__device__ inline void for_each_turn(float (&sums)[Count], Body body)
{
    static_assert(Count % Turn == 0);
#pragma unroll 1
    for (int turn = 0; turn < Count / Turn; ++turn) {
        float now[Turn];
#pragma unroll
        for (int i = 0; i < Turn; ++i)
            now[i] = sums[i];
        body(now, turn);
#pragma unroll
        for (int i = 0; i < Count - Turn; ++i)
            sums[i] = sums[i + Turn];
#pragma unroll
        for (int i = 0; i < Turn; ++i)
            sums[Count - Turn + i] = now[i];
    }
}

// alpha times the sums and beta times C of type T, whose lines lie along y. A thread's sums are of the
// lines lane / 4 and + 8 of each block of 64, of two neighbours in each eight of y.
template <Config C, Type T>
__device__ inline void add_c_in_place(const OutputParams& o, const Scalars& s,
                                      float (&sums)[sums_a_thread(C)], const Block& at)
{
    constexpr int in_turn = 16;
    const int64_t line = 2 * o.ldc, x = at.x + at.warp * 16 + at.lane / 4, y = at.y + at.lane % 4 * 2;
    const char* const first = static_cast<const char*>(o.c) + x * line + 2 * (at.batch * o.stride_c + y);
    const auto left_x = static_cast<int>(min(o.m - x, int64_t{C.x}));
    const auto left_y = static_cast<int>(min(o.n - y, int64_t{C.y}));
    for_each_turn<in_turn>(sums, [&](float(&v)[in_turn], int turn) {
        uint32_t pairs[in_turn / 2];
#pragma unroll
        for (int i = 0; i < in_turn / 2; ++i) {
            const int eight = turn * (in_turn / 4) + i / 2;
            const int at_x = eight / (C.y / 8) * 64 + i % 2 * 8, at_y = eight % (C.y / 8) * 8;
            if (at_x < left_x && at_y < left_y)
                pairs[i] = __ldcg(reinterpret_cast<const uint32_t*>(first + at_x * line) + at_y / 2);
        }
#pragma unroll
        for (int i = 0; i < in_turn / 2; ++i) {
            const float of_c[2] = {to_float(static_cast<uint16_t>(pairs[i]), T),
                                   to_float(static_cast<uint16_t>(pairs[i] >> 16), T)};
            for (int e = 0; e < 2; ++e)
                v[2 * i + e] = fmaf(s.beta, of_c[e], __fmul_rn(s.alpha, v[2 * i + e]));
        }
    });
}

// alpha times the sums, C, the bias, which stage_bias() has left, and the activation.
template <Config C, Type T>
__device__ inline void finish_in_place(const Params& p, const Scalars& s, Accumulator<C>& acc,
                                       const float* bias, const Block& at)
{
    auto& sums = reinterpret_cast<float(&)[sums_a_thread(C)]>(acc);
    const bool with_c = takes_turns(C) && p.output.c && s.beta != 0.0f;
    if (!with_c)
        for_each_of(sums, [&](float sum) { return __fmul_rn(s.alpha, sum); });
    if constexpr (takes_turns(C)) {
        if (with_c)
            add_c_in_place<C, T>(p.output, s, sums, at);
    }
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
            for_each_turn<sums_in_turn>(sums,
                                        [](float(&v)[sums_in_turn], int) { for_each_of(v, gelu_tanh); });
        else if (p.output.activation == Activation::Silu)
            for_each_turn<sums_in_turn>(sums, [](float(&v)[sums_in_turn], int) { for_each_of(v, silu); });
    }
}

}  // namespace hg::sm90
