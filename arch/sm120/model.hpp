// The cost model of sm120: how long a kernel takes.
#pragma once

#include "src/plan/backend.hpp"

#include <cstdint>
#include <limits>

namespace hg::sm120 {

// Microseconds that `tiles` tiles of the kernel take. May be infinite from `limit` on.
double predict_kernel(const Problem& problem, const Device& device, int kernel, int64_t tiles, int sm_count,
                      double limit = std::numeric_limits<double>::infinity());

// Backend::predict_plan.
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

}  // namespace hg::sm120
