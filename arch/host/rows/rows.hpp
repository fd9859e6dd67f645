// The product of up to eight rows with a large operand: bound by memory, so the large operand is read once,
// as it is, and never written to memory in another type. Needs no workspace.
#pragma once

#include "arch/host/pool.hpp"
#include "arch/host/rows/kernels.hpp"
#include "src/problem.hpp"

namespace hg {

// Has one side of D at most few_rows, and is the operand of the other side contiguous in one direction?
bool is_few_rows(const Problem& problem);

void multiply_rows(Pool& pool, const RowsKernels& kernels, const Problem& problem, int threads);

}  // namespace hg
