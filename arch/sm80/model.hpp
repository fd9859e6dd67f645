// The cost model of sm80: how long a candidate takes.
#pragma once

#include "src/plan/backend.hpp"

#include <cstdint>
#include <limits>

namespace hg::sm80 {

// How a kernel is run on a problem: how many tiles, and slices of K for each.
struct Candidate {
    int kernel;
    int64_t tiles, split;
};

// Microseconds that a candidate takes on `sm_count` SMs, all of the device or, if `limited`, as many as the
// caller allows. May be infinite from `limit` on.
double predict_candidate(const Problem& problem, const Device& device, const Candidate& candidate,
                         int sm_count, bool limited,
                         double limit = std::numeric_limits<double>::infinity());

// Backend::predict_plan.
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

}  // namespace hg::sm80
