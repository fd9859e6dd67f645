// Kernels that gate their results: half of each warp's columns are gates, and the other half their up
// elements. So a thread has both sums of a pair in its accumulators, and the warp stores columns of D half
// as wide.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/types.hpp"
#include "arch/common/warp_store.cuh"
#include "arch/common/warp_tile.cuh"
#include "arch/sm80/config.hpp"

#include <cstdint>

namespace hg::sm80 {

// Columns of the product that belong to a column of D.
struct GateColumns {
    int64_t gate, up;

    __device__ GateColumns(const GateTiles& p, int64_t column)
    {
        const int64_t block = p.block.value;
        gate = p.alternate ? 2 * column : column + p.block.quotient(static_cast<int32_t>(column)) * block;
        up = p.alternate ? gate + 1 : gate + block;
    }
};

// The row of B of a tile's first gate, whose column of D is `column`.
__device__ inline int64_t row_of_gate(const GateTiles& p, int64_t column)
{
    return p.alternate ? column : GateColumns(p, column).gate;
}

// Replaces a warp's sums by elements of the product: alpha times them, and the bias. `column`: of D, where
// the warp's columns begin.
template <int WM, int WN>
__device__ inline void finish_product(const OutputParams& o, const GateTiles& p, const Scalars& s,
                                      WarpAccumulator<WM, WN>& acc, int32_t z, int64_t column, int lane)
{
    constexpr int half = WN / 16;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
            transform(acc.v[i][j], [&](float sum) { return __fmul_rn(s.alpha, sum); });
    if (o.bias_along == BiasAlong::None) [[likely]]
        return;
    const int64_t base = z * o.stride_bias;
#pragma unroll
    for (int j = 0; j < half; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int64_t d = column + 8 * j + lane % 4 * 2 + e;
            if (d >= o.n / 2)
                continue;
            const GateColumns at(p, d);
            const float gate = load_element(o.bias, base + at.gate, o.type_bias),
                        up = load_element(o.bias, base + at.up, o.type_bias);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int row = 0; row < 2; ++row) {
                    float &g = acc.v[i][j][2 * row + e], &u = acc.v[i][j + half][2 * row + e];
                    g = __fadd_rn(g, gate);
                    u = __fadd_rn(u, up);
                }
        }
}

// Stores the product's elements as aux, in type T: two neighbours at a time, or four where gates and up
// elements alternate.
template <Type T, int WM, int WN>
__device__ inline void store_aux(const OutputParams& o, const GateTiles& p,
                                 const WarpAccumulator<WM, WN>& acc, int32_t z, int64_t row, int64_t column,
                                 int lane)
{
    constexpr int half = WN / 16;
    uint16_t* const aux = static_cast<uint16_t*>(o.aux) + z * o.stride_aux;
    row += lane / 4;
#pragma unroll
    for (int j = 0; j < half; ++j) {
        const int64_t d = column + 8 * j + lane % 4 * 2;
        if (d >= o.n / 2)
            continue;
        const GateColumns at(p, d);
#pragma unroll
        for (int i = 0; i < WM / 8; ++i) {
            const float* const g = acc.v[i / 2][j] + i % 2 * 2;
            const float* const u = acc.v[i / 2][j + half] + i % 2 * 2;
            const uint32_t gates = to_bits2(g[0], g[1], T), ups = to_bits2(u[0], u[1], T);
            uint16_t* const line = aux + (row + 8 * i) * o.ldaux;
            if (row + 8 * i >= o.m)
                continue;
            if (p.alternate) {
                *reinterpret_cast<uint2*>(line + at.gate) =
                    make_uint2(__byte_perm(gates, ups, 0x5410), __byte_perm(gates, ups, 0x7632));
            } else {
                *reinterpret_cast<uint32_t*>(line + at.gate) = gates;
                *reinterpret_cast<uint32_t*>(line + at.up) = ups;
            }
        }
    }
}

template <int WM, int WN>
__device__ inline void gate_tile(const OutputParams& o, const Gate& gate,
                                 const WarpAccumulator<WM, WN>& acc, WarpAccumulator<WM, WN / 2>& gated_acc)
{
    with_short_gate_function(o.activation, gate.slope, [&](auto activation) {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < WN / 16; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    gated_acc.v[i][j][e] =
                        gated(acc.v[i][j][e], acc.v[i][j + WN / 16][e], gate, activation);
    });
}

// Where D lies, as the output of a product without anything else.
__device__ inline OutputParams plain_output(const OutputParams& o)
{
    OutputParams d = o;
    d.n = o.n / 2;
    d.aux = nullptr;
    d.bias_along = BiasAlong::None;
    d.activation = Activation::None;
    return d;
}

// Stores a warp's tile whose first element is (row, column) of D.
template <Type T, int WM, int WN>
__device__ inline void store_gated_warp_tile(const OutputParams& o, const GateTiles& p, const Scalars& s,
                                             WarpAccumulator<WM, WN>& acc, float* chunk, int32_t z,
                                             int64_t row, int64_t column, int lane)
{
    finish_product(o, p, s, acc, z, column, lane);
    if (o.aux) [[unlikely]]
        store_aux<T>(o, p, acc, z, row, column, lane);
    WarpAccumulator<WM, WN / 2> gated_acc;
    gate_tile(o, p.gate, acc, gated_acc);
    store_warp_tile<T, WM, WN / 2>(plain_output(o), Scalars{1.0f, 0.0f}, gated_acc, chunk, z, row, column,
                                   lane);
}

}  // namespace hg::sm80
