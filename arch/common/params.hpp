// The output of every kernel, and slices of K: parts of the Params of backends.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/types.hpp"

namespace hg {

// D[i][j] = activation(alpha * acc + beta * C[i][j] + bias), row-major, strides in elements. Where d_array
// or c_array is set, d or c is what is added to each address in it: see problem_base().
struct OutputParams {
    void* d;
    void* const* d_array;
    const void* c;  // null, and c_array too: C is not read
    const void* const* c_array;
    const void* bias;
    void* aux;  // null: no aux
    int64_t ldd, ldc, ldaux;
    int64_t stride_d, stride_c, stride_bias, stride_aux;
    int64_t m, n;
    const float* alpha_device;  // null: use `alpha` and `beta`
    const float* beta_device;
    float alpha, beta;
    Type type_c, type_d, type_bias;
    BiasAlong bias_along;
    Activation activation;
};

// Slices of K, of which each is multiplied by a CTA of its own: see slice_sum.cuh.
struct SliceParams {
    Divisor split;       // how many slices a tile has, of whole K tiles
    int32_t k_tiles;     // of all slices
    float* partials;     // the sums of each warp of each tile: a part for each slice, in order
    uint32_t* arrivals;  // one word for each warp of each tile, 0 between kernels
};

}  // namespace hg
