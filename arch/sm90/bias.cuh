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
    const int lane = threadIdx.x % 32, x = lane / 4, y = lane % 4 * 2;
    const float of_x[2] = {bias[x], bias[x + 8]};
#pragma unroll
    for (int block = 0; block < Y / 8; ++block) {
        float* const v = acc + 4 * block;
        const float2 of_y = *reinterpret_cast<const float2*>(bias + (along_y ? 8 * block + y : 0));
        v[0] = __fadd_rn(v[0], along_y ? of_y.x : of_x[0]);
        v[1] = __fadd_rn(v[1], along_y ? of_y.y : of_x[0]);
        v[2] = __fadd_rn(v[2], along_y ? of_y.x : of_x[1]);
        v[3] = __fadd_rn(v[3], along_y ? of_y.y : of_x[1]);
    }
}

}  // namespace hg::sm90
