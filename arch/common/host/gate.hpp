// The pass that gates sums, and that of gradients: from what they are of to the kernels' parameters.
#pragma once

#include "arch/common/gate/config.hpp"
#include "src/plan/gate.hpp"

#include <cstdint>

namespace hg {

GateParams pack_gates(const GatePass& pass);

// Rows that a launch can serve.
int64_t rows_at_once(const GateGradient& what);
// Rows `first` to first + rows - 1.
GateGradientParams pack_gate_gradient(const GateGradient& what, int64_t first, int64_t rows);

}  // namespace hg
