// Moves of a triangle: from what is to be moved to the kernel's parameters.
#pragma once

#include "arch/common/triangle/config.hpp"
#include "src/plan/triangle.hpp"

#include <cstdint>

namespace hg {

// How many problems one launch moves at most.
int64_t problems_of_triangle_launch(const TriangleMove& move);

// Of `count` problems from the one with the number `first` on.
TriangleParams pack_triangle(const TriangleMove& move, int64_t first, int64_t count);

}  // namespace hg
