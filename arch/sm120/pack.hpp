// Fills Params: tensor maps, raster.
#pragma once

#include "arch/sm120/config.hpp"
#include "src/base/status.hpp"
#include "src/plan/backend.hpp"

namespace hg::sm120 {

// Fills the kernel's parameters for a legal plan.
Status pack_gemm(const Problem& problem, const Plan& plan, Params& params);

}  // namespace hg::sm120
