// Grouped GEMMs whose sizes the device reads: one problem.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <optional>

namespace hg {

// Checks the arguments of contiguous or masked groups, as hgemm_grouped_ex() does, and makes them a
// problem; none if there is nothing to compute.
Status to_grouped_problem(const Handle& handle, const hgemm_grouped_args_t* args,
                          std::optional<Problem>& problem);

}  // namespace hg
