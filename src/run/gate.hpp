// Runs problems with gates, and gradients of gated results.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/gate.hpp"
#include "src/run/composite.hpp"
#include "src/run/handle.hpp"

namespace hg {

extern const Composite gate_composite;

Status run_gate_gradient(Handle& handle, const GateGradient& what);

}  // namespace hg
