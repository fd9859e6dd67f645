// A bias for the sums of a tile, staged in shared memory.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/params.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

__device__ inline bool is_bias_along_n(const OutputParams& o, bool swap_ab)
{
    return (o.bias_along == BiasAlong::Columns) != swap_ab;
}

// The elements of the bias that a tile needs, along M or along N.
struct TileBias {
    bool along_n;
    const void* base;
    int64_t first, last;  // elements: the tile's first, and the problem's last
    Type type;

    template <Config C>
    __device__ static TileBias of(const OutputParams& o, bool swap_ab, const TileCoord& at)
    {
        const bool along_n = is_bias_along_n(o, swap_ab);
        const int64_t problem = at.batch * o.stride_bias;
        return {along_n, o.bias, problem + (along_n ? at.n : at.m),
                problem + (o.bias_along == BiasAlong::Columns ? o.n : o.m) - 1, o.type_bias};
    }

    // Past the problem's end it loads the last element: the epilogue stores no such row or column.
    __device__ float load(int i) const { return load_element(base, min(first + i, last), type); }
};

// Does each up element of a tile follow its gate, and not lie in the other half? So it is where they
// alternate along N and B is contiguous along N.
template <Major MB>
__device__ inline bool are_pairs(const GateLayout& gate)
{
    return MB == Major::MN && gate.gate.block == 1;
}

// Where in a line of the product the gate of D's column lies, or if half is 1 its up element.
__device__ inline int64_t gate_place(const GateLayout& gate, int32_t column, int half)
{
    if (gate.gate.block == 1)
        return 2 * int64_t{column} + half;
    return column + (gate.block.quotient(column) + int64_t{half}) * gate.gate.block;
}

// The elements of the bias for gates and up elements of D's columns, those of problem or group `batch`.
struct GateBias {
    const OutputParams& output;
    const GateLayout& gate;
    int64_t first;  // of the problem, in the bias

    __device__ GateBias(const Params& p, int32_t batch)
        : output(p.output), gate(p.gate), first(batch * p.output.stride_bias)
    {
    }

    // Past the last column it loads the last element: the epilogue stores no such column.
    __device__ float load(int64_t column, int half) const
    {
        const auto existing = static_cast<int32_t>(min(column, output.n / 2 - 1));
        return load_element(output.bias, first + gate_place(gate, existing, half), output.type_bias);
    }
};

// Adds the bias to a warp's 16 x N sums. `bias`: the elements of the tile's columns, or of the warp's rows.
template <int N>
__device__ inline void add_bias(float* acc, const float* bias, bool along_n)
{
    const int lane = threadIdx.x % 32;
    if (along_n) {
        const float* const n_bias = bias + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
            acc[i] = __fadd_rn(acc[i], n_bias[i / 4 * 8 + i % 2]);
    } else {
        const float m_bias[2] = {bias[lane / 4], bias[lane / 4 + 8]};
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
            acc[i] = __fadd_rn(acc[i], m_bias[i / 2 % 2]);
    }
}

}  // namespace hg::sm90
