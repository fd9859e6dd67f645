// Chooses a kernel for a problem with groups. Only the device knows how many rows, or how much K, each has.
#pragma once

#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

namespace hg::sm90 {

// By a kernel for groups of few rows, with gates or not. False: these kernels do not serve the problem, or
// others are faster.
bool choose_few_rows(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// By a persistent kernel.
bool choose_many_rows(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// By either.
bool choose_groups(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm90
