// What every kernel is told about its output; part of each backend's Params.
#pragma once

#include "arch/common/types.hpp"

namespace hg {

// D[i][j] = activation(alpha * acc + beta * C[i][j] + bias), row-major, element strides. An array
// pointer, where set, holds one base address a problem and replaces ptr + z * stride.
struct OutputParams {
    void* d;
    void* const* d_array;
    const void* c;  // null with c_array: not read
    const void* const* c_array;
    const void* bias;
    void* aux;  // null: not wanted
    int64_t ldd, ldc, ldaux;
    int64_t stride_d, stride_c, stride_bias, stride_aux;
    int64_t m, n;
    const float* alpha_device;  // null: the value below
    const float* beta_device;
    float alpha, beta;
    Type type_c, type_d, type_bias;
    BiasAlong bias_along;
    Activation activation;
};

}  // namespace hg
