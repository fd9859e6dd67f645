// What is computed of tensors element by element or row by row. As product(), each returns null where
// hgemm.torch's own code has to find out what to do.
#pragma once

#include <cstdint>

#include "product.hpp"
#include "torch_api.hpp"

namespace hgemm_torch {

// The gradient of a gated product, from the product and the gradient of the gated result, in the type of
// that: by the gate and the activation of options. Both are of any dimensions.
Tensor gate_gradient(Tensor product, Tensor grad, const Options& options);

// Of the operators of these names, without _serve_: rows are those of choices. Weights are read with ADDED;
// with CLEAR the rows that are behind the last end are 0.
struct Routed {
    Tensor rows, ends;
};
Routed route(Tensor indices, std::int64_t experts);
Tensor gather(Tensor x, Tensor weights, Tensor rows, Tensor ends, const Options& options);
Tensor combine(Tensor values, Tensor weights, Tensor rows, const Options& options);
Tensor dot(Tensor x, Tensor values, Tensor rows, hgemm_type_t type);

}  // namespace hgemm_torch
