// Runs problems with gates.
#pragma once

#include "src/run/composite.hpp"

namespace hg {

extern const Composite gate_composite;

}  // namespace hg
