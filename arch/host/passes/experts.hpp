// Layers of experts on the CPU.
#pragma once

#include "arch/host/pool.hpp"
#include "src/plan/experts.hpp"

namespace hg {

void route(const Route& what);
void move_rows(Pool& pool, const RowMove& what, int threads);
void clear_rows(const RowClear& what);

}  // namespace hg
