// The pass that gates sums: from what it gates to the kernel's parameters.
#pragma once

#include "arch/common/gate/config.hpp"
#include "src/plan/gate.hpp"

namespace hg {

GateParams pack_gates(const GatePass& pass);

}  // namespace hg
