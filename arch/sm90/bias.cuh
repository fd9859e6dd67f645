// A bias on the sums of a tile, on its way through shared memory.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/params.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

__device__ inline bool is_bias_along_n(const OutputParams& o, bool swap_ab)
{
    return (o.bias_along == BiasAlong::Columns) != swap_ab;
}

// The elements of the bias along the side of a tile that it goes along.
struct TileBias {
    bool along_n;
    const void* base;
    int64_t first, last;  // element of this tile's first x or y, and of the problem's last
    Type type;

    template <Config C>
    __device__ static TileBias of(const OutputParams& o, bool swap_ab, const TileCoord& at)
    {
        const bool along_n = is_bias_along_n(o, swap_ab);
        const int64_t problem = at.batch * o.stride_bias;
        return {along_n, o.bias, problem + (along_n ? int64_t{at.n} * C.tile_n : int64_t{at.m} * C.tile_m),
                problem + (o.bias_along == BiasAlong::Columns ? o.n : o.m) - 1, o.type_bias};
    }

    // Past the problem's end: the last element.
    __device__ float load(int i) const { return load_element(base, min(first + i, last), type); }
};

// Adds the bias to a warp's 16 x N sums. `bias`: that of the tile's y, or of the warp's first x on.
template <int N>
__device__ inline void add_bias(float* acc, const float* bias, bool along_n)
{
    const int lane = threadIdx.x % 32;
    if (along_n) {
        const float* const of_n = bias + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
            acc[i] = __fadd_rn(acc[i], of_n[i / 4 * 8 + i % 2]);
    } else {
        const float of_m[2] = {bias[lane / 4], bias[lane / 4 + 8]};
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
            acc[i] = __fadd_rn(acc[i], of_m[i / 2 % 2]);
    }
}

}  // namespace hg::sm90
