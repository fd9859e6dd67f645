// Products by groups. As product(), each returns null where hgemm.torch's own code has to find out what to
// do.
#pragma once

#include "product.hpp"
#include "torch_api.hpp"
#include "view.hpp"

namespace hgemm_torch {

// Where groups end: 32 or 64 bits each, contiguous.
bool read_ends(Tensor ends, const View& beside, hgemm_grouped_args_t& args);

// Rows of a (M, K) in groups, each by its own matrix of b (G, K, N), plus its row of bias (G, N), if there
// is one. With OF_K columns of a (M, K) by rows of b (K, N), of each group: (G, M, N).
Tensor grouped_product(Tensor a, Tensor b, Tensor ends, Tensor bias, const Options& options);

}  // namespace hgemm_torch
