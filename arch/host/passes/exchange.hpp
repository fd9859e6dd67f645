// Exchanges on the CPU: the calling thread waits by itself.
#pragma once

#include "arch/host/pool.hpp"
#include "src/plan/exchange.hpp"

namespace hg {

void exchange(Pool& pool, const Exchange& what, int threads);

}  // namespace hg
