// Runs products in the order HGEMM_MODE_TREE.
#pragma once

#include "src/plan/problem.hpp"
#include "src/run/composite.hpp"
#include "src/run/handle.hpp"

namespace hg {

// Is the problem's K halved? In tree mode wherever it can be, in the default mode where that is faster.
bool is_tree(const Handle& handle, const Problem& problem);

extern const Composite tree_composite;

}  // namespace hg
