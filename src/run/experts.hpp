// Orders, moves and clears the rows of a layer of experts, on the handle's stream.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/experts.hpp"
#include "src/run/handle.hpp"

namespace hg {

Status run_route(Handle& handle, const Route& what);
Status run_rows(Handle& handle, const RowMove& what);
Status run_clear(Handle& handle, const RowClear& what);

}  // namespace hg
