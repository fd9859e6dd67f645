// host_rows: up to eight rows times a large operand. That is bound by memory, so the large operand is read
// once and never written to memory in another type. Needs no workspace.
#pragma once

#include "arch/host/pool.hpp"
#include "arch/host/rows/kernels.hpp"
#include "src/plan/problem.hpp"

namespace hg {

// Has D at most few_rows rows (or columns), and is B (or A) contiguous in one direction?
bool is_few_rows(const Problem& problem);

void multiply_rows(Pool& pool, const RowsKernels& kernels, const Problem& problem, int threads);

}  // namespace hg
