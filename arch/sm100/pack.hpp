// Fills Params: swap_ab, tensor maps, raster.
#pragma once

#include "arch/sm100/config.hpp"
#include "src/base/status.hpp"
#include "src/plan/backend.hpp"

namespace hg::sm100 {

// Fills the kernel's parameters for a legal plan.
Status pack_gemm(const Problem& problem, const Plan& plan, int sm_count, Params& params);

}  // namespace hg::sm100
