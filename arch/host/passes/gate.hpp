// Gates sums, and computes gradients of gated results, on the host.
#pragma once

#include "arch/host/pool.hpp"
#include "src/plan/gate.hpp"

namespace hg {

// By at most `threads` threads.
void apply_gates(Pool& pool, const GatePass& pass, int threads);
void differentiate_gates(Pool& pool, const GateGradient& what, int threads);

}  // namespace hg
