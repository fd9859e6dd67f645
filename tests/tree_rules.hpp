// HGEMM_MODE_TREE: the same checks for the host and for every GPU backend, reported to GoogleTest.
#pragma once

#include "library.hpp"

namespace hg::test {

// The bits are those of batch-invariant products of the leaves, added up pairwise: in every layout, with any
// workspace that suffices, and where halves of k are multiplied by themselves.
void check_tree_bits(Library& library);
// Outputs, batches and scalars of all kinds are right.
void check_tree_results(Library& library);
// What the mode does not serve is refused, and nothing is written.
void check_tree_refusals(Library& library);

}  // namespace hg::test
