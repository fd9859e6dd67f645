// Chooses the kernel of sm80 that serves a problem, and how it is run.
#pragma once

#include "src/plan/backend.hpp"

namespace hg::sm80 {

// Backend::choose.
bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// The same of gated results (choose_gated.cpp). False where no kernel serves the problem, which then runs
// in parts: src/run/gate.cpp.
bool choose_gated(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm80
