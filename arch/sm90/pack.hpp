// Problem + Plan -> the kernels' parameters: tensor maps, and what the plan decided.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/params.hpp"
#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg::sm90 {

// Fill a kernel's parameters for a legal plan. Addresses in the workspace are set in backend.cpp.
Status pack_gemm(const Problem& problem, const Plan& plan, Params& params);
Status pack_triangle_product(const Problem& problem, const Plan& plan, Params& params);
Status pack_gated_product(const Problem& problem, const Plan& plan, Params& params);
// Can a gated kernel with such tiles find this problem's gates?
bool finds_gates(const Config& config, const Problem& problem);
Status pack_groups(const Problem& problem, const Plan& plan, Params& params);
Status pack_few_rows(const Problem& problem, const Plan& plan, Params& params);
void pack_direct(const Problem& problem, const Plan& plan, DirectParams& params);

}  // namespace hg::sm90
