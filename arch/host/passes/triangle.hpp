// Moves of a triangle on the host.
#pragma once

#include "arch/host/pool.hpp"
#include "src/plan/triangle.hpp"

namespace hg {

// By at most `threads` threads.
void move_triangle(Pool& pool, const TriangleMove& move, int threads);

}  // namespace hg
