// Chooses among the kernels that read operands without TMA: legality, then a cost model.
#pragma once

#include "arch/common/host/facts.hpp"
#include "src/plan/backend.hpp"

namespace hg::sm90 {

// GEMV or DIRECT of kernels.def. GEMV is for up to four columns of the MMA's B.
enum class DirectFamily { Gemv, Direct };

// Is a GEMV kernel best, whatever else could serve the problem?
bool prefers_gemv(const Facts& facts);

// Fills the plan; false with plan.refusal set when no kernel of this family fits, or, where HGEMM_KERNEL
// names a kernel of either family, that one does not.
bool choose_direct(const Facts& facts, const Device& device, const Options& options, DirectFamily family,
                   Plan& plan);

// Microseconds that a plan with such a kernel takes.
double predict_direct_plan(const Facts& facts, const Device& device, const Plan& plan, int sm_count);

}  // namespace hg::sm90
