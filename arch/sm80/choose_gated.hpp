// Chooses a kernel that gates its results.
#pragma once

#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

namespace hg::sm80 {

// False with plan.refusal set where none serves the problem, which then runs in parts: src/run/gate.cpp.
bool choose_gated(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm80
