// Problem x Device -> plan: which kernel runs it, and how. Legality, then measured exceptions, then a cost
// model and what networks learned of how far that is off.
#pragma once

#include "src/backend.hpp"
#include "src/problem.hpp"

#include <cstddef>

namespace hg::sm90 {

// Words behind a workspace of so many bytes: some that CTAs count arrivals with, and such as slices of K
// leave for each other, of a tile of 128 x 128 for each SM, but no more bytes than a quarter of the
// workspace.
size_t counter_words(const Device& device, size_t workspace);

// Fill the plan; false with plan.refusal set when no kernel, or not the forced one, fits the problem.
bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm90
