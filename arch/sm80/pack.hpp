// Fills Params: operands, raster, slices of K.
#pragma once

#include "arch/sm80/config.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg::sm80 {

// `rows`: M of A, N of B.
OperandParams pack_operand(const Operand& operand, const Problem& problem, int64_t rows);

// Fills the kernel's parameters for a legal plan; all but where slices of K count and leave their sums.
void pack_gemm(const Problem& problem, const Plan& plan, Params& params);

}  // namespace hg::sm80
