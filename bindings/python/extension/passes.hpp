// What is computed of tensors element by element or row by row. As product(), each returns null where
// hgemm.torch's own code has to find out what to do.
#pragma once

#include "product.hpp"
#include "torch_api.hpp"

namespace hgemm_torch {

// The gradient of a gated product, from the product and the gradient of the gated result, in the type of
// that: by the gate and the activation of options. Both are of any dimensions.
Tensor gate_gradient(Tensor product, Tensor grad, const Options& options);

}  // namespace hgemm_torch
