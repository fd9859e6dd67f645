// Problem x Device -> one of the kernels that read operands without TMA: legality, then a cost model.
#pragma once

#include "arch/common/host/facts.hpp"
#include "src/backend.hpp"

namespace hg::sm90 {

// GEMV lines of kernels.def, for few columns of B, or DIRECT lines.
enum class DirectFamily { Gemv, Direct };

// Is a GEMV kernel best, whatever else could serve the problem?
bool prefers_gemv(const Facts& facts);

// Fill what a plan says of the kernel; false with plan.refusal set when none of this family fits, or of
// either if one is forced.
bool choose_direct(const Facts& facts, const Device& device, const Options& options,
                   DirectFamily family, Plan& plan);

}  // namespace hg::sm90
