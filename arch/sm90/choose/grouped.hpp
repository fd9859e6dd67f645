// Chooses a kernel for a problem with groups. Only the device knows how many rows, or how much K, each has.
#pragma once

#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

namespace hg::sm90 {

bool choose_groups(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm90
