// The line of the log that runs a problem again.
#pragma once

#include "src/base/log.hpp"
#include "src/plan/problem.hpp"

namespace hg {

// Logs a command that runs the problem again: m, n and k of hgemm-bench's row-major D = op(A) * op(B), the
// batch, and the output.
void trace(const Log& log, const Problem& problem);

}  // namespace hg
