// The sum of a tree's leaves on the host.
#pragma once

#include "arch/host/pool.hpp"
#include "src/plan/problem.hpp"
#include "src/plan/tree.hpp"

namespace hg {

// Adds up the leaves of each element pairwise and finishes the output, by at most `threads` threads.
void sum_tree(Pool& pool, const Problem& output, const LeafSums& sums, int threads);

}  // namespace hg
