// Runs products in the order HGEMM_MODE_TREE.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <cstddef>

namespace hg {

// Is the handle in tree mode, and is the problem's K halved?
bool is_tree(const Handle& handle, const Problem& problem);

// Finds all that could refuse the problem but a workspace that is too small; `bytes`: what it uses of it, or
// needs.
Status check_tree(Handle& handle, const Problem& problem, size_t& bytes);
// Finds all that could refuse it, and provides a lent workspace.
Status prepare_tree(Handle& handle, const Problem& problem);
// Launches it on the handle's stream, in the current context.
Status run_tree(Handle& handle, const Problem& problem);
// One line about how it would run, cut to `length` bytes.
Status explain_tree(Handle& handle, const Problem& problem, char* text, size_t length);

}  // namespace hg
