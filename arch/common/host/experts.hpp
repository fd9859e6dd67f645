// The launches of the kernels that order and move the rows of a layer of experts.
#pragma once

#include "arch/common/experts/config.hpp"
#include "src/plan/experts.hpp"

#include <cstddef>
#include <cstdint>

namespace hg {

// How many CTAs sort the choices. With more than one there are two launches, and counts in the workspace.
int64_t count_route_ctas(const Route& what, int64_t most, size_t workspace);
RouteParams pack_route(const Route& what, int64_t ctas, int32_t* counts);

// Tokens that a launch can serve.
int64_t tokens_at_once(const RowMove& what);
// Tokens `first` to first + tokens - 1.
RowsParams pack_rows(const RowMove& what, int64_t first, int64_t tokens);

// For a grid of so many CTAs at most.
ClearParams pack_clear(const RowClear& what, int64_t most);

}  // namespace hg
