// Runs exchanges on a handle's stream.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/exchange.hpp"
#include "src/run/handle.hpp"

namespace hg {

// Can the handle run any?
Status check_exchanges(const Handle& handle);

Status run_exchange(Handle& handle, const Exchange& what);

}  // namespace hg
