// Chooses the kernel of sm100 that serves a problem, and how it is run.
#pragma once

#include "src/plan/backend.hpp"

namespace hg::sm100 {

// Backend::choose.
bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm100
