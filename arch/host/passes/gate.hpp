// Gates sums on the host.
#pragma once

#include "arch/host/pool.hpp"
#include "src/plan/gate.hpp"

namespace hg {

// By at most `threads` threads.
void apply_gates(Pool& pool, const GatePass& pass, int threads);

}  // namespace hg
