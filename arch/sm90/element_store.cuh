// Outputs whose lines are not whole vectors, and which take a bias at most: the lanes of a warp store
// neighbours, so that L2 gets whole sectors. Eight columns a lane are eight times as many pieces.
#pragma once

#include "arch/common/epilogue.cuh"

namespace hg::sm90 {

struct ElementStore {
    char* d;
    int64_t row_bytes;
    const void* bias;
    int64_t bias_index;
    float alpha;
    BiasAlong along;
    Type type, type_bias;

    // Of problem z.
    __device__ ElementStore(const OutputParams& p, float alpha, int32_t z)
        : d(static_cast<char*>(p.d) + z * p.stride_d * device_bytes_of(p.type_d)),
          row_bytes(p.ldd * device_bytes_of(p.type_d)), bias(p.bias), bias_index(z * p.stride_bias),
          alpha(alpha), along(p.bias_along), type(p.type_d), type_bias(p.type_bias)
    {
    }

    __device__ void store(int64_t i, int64_t j, float sum) const
    {
        float v = __fmul_rn(alpha, sum);
        if (along != BiasAlong::None)
            v = __fadd_rn(v,
                          load_element(bias, bias_index + (along == BiasAlong::Rows ? i : j), type_bias));
        char* const row = d + i * row_bytes;
        if (type == Type::F32)
            reinterpret_cast<float*>(row)[j] = v;
        else
            reinterpret_cast<uint16_t*>(row)[j] = to_bits(v, type);
    }
};

// `rows` by `columns` elements from (i, j) on, as far as the output has them, by warps side by side: `warp`
// of `warps` takes rows in turn. sum(row, column) is what to store.
template <typename Sum>
__device__ inline void store_by_element(const OutputParams& p, float alpha, int32_t z, int64_t i, int64_t j,
                                        int rows, int columns, int warp, int warps, Sum sum)
{
    const ElementStore out(p, alpha, z);
    const int lane = threadIdx.x % 32;
    rows = static_cast<int>(min(p.m - i, int64_t{rows}));
    columns = static_cast<int>(min(p.n - j, int64_t{columns}));
#pragma unroll 1
    for (int column = lane; column < columns; column += 32)
#pragma unroll 4
        for (int row = warp; row < rows; row += warps)
            out.store(i + row, j + column, sum(row, column));
}

}  // namespace hg::sm90
