// A bias on the sums of a tile, on its way through shared memory.
#pragma once

#include "arch/sm90/mainloop.cuh"

namespace hg::sm90 {

__device__ inline bool is_bias_along_y(const OutputParams& o, bool swapped)
{
    return (o.bias_along == BiasAlong::Columns) != swapped;
}

// The elements of the bias along the side of a tile that it goes along.
struct TileBias {
    bool along_y;
    const void* base;
    int64_t first, last;  // element of this tile's first x or y, and of the problem's last
    Type type;

    template <Config C>
    __device__ static TileBias of(const OutputParams& o, bool swapped, const Position& at)
    {
        const bool along_y = is_bias_along_y(o, swapped);
        const int64_t problem = at.batch * o.stride_bias;
        return {along_y, o.bias, problem + (along_y ? int64_t{at.y} * C.y : int64_t{at.x} * C.x),
                problem + (o.bias_along == BiasAlong::Columns ? o.n : o.m) - 1, o.type_bias};
    }

    // Past the problem's end: the last element.
    __device__ float load(int i) const { return load_element(base, min(first + i, last), type); }
};

// Adds the bias to a warp's 16 x Y sums. `bias`: that of the tile's y, or of the warp's first x on.
template <int Y>
__device__ inline void add_bias(float* acc, const float* bias, bool along_y)
{
    const int lane = threadIdx.x % 32;
    if (along_y) {
        const float* const of_y = bias + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < Y / 2; ++i)
            acc[i] = __fadd_rn(acc[i], of_y[i / 4 * 8 + i % 2]);
    } else {
        const float of_x[2] = {bias[lane / 4], bias[lane / 4 + 8]};
#pragma unroll
        for (int i = 0; i < Y / 2; ++i)
            acc[i] = __fadd_rn(acc[i], of_x[i / 2 % 2]);
    }
}

}  // namespace hg::sm90
