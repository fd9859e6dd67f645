// Runs problems that ask for a triangle of a symmetric D.
#pragma once

#include "src/run/composite.hpp"

namespace hg {

extern const Composite triangle_composite;

}  // namespace hg
