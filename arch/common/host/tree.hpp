// The sum of a tree's leaves: from the problem and its sums to the kernel's parameters.
#pragma once

#include "arch/common/tree/config.hpp"
#include "src/plan/problem.hpp"
#include "src/plan/tree.hpp"

#include <cstdint>

namespace hg {

// `ctas`: how many run at a time at most. Where elements are few, several threads share one.
TreeSumParams pack_tree_sum(const Problem& output, const LeafSums& sums, int64_t ctas);

}  // namespace hg
