// HGEMM_MODE_TREE: the same checks for the host and for every GPU backend, reported to GoogleTest.
#pragma once

#include "library.hpp"

namespace hg::test {

// The bits are those of batch-invariant products of the leaves, added up pairwise: in every layout, with
// any workspace that suffices, and where halves of k are multiplied by themselves.
void check_tree_bits(Library& library);
// Outputs, batches and scalars of all kinds are right.
void check_tree_results(Library& library);
// Batches of pointer arrays have the bits of batches with strides.
void check_tree_arrays(Library& library);
// In the default mode a very long K of a small D is cut too, on sm90: the result is right, and the bits are
// not those of another mode. Not where a kernel, or less workspace, was asked for.
void check_long_k(Library& library);
// What the mode does not serve is refused, and nothing is written.
void check_tree_refusals(Library& library);

}  // namespace hg::test
