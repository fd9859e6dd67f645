// Copies of operands that TMA cannot address: which, and what they cost.
#pragma once

#include "arch/common/host/repack.hpp"
#include "src/plan/calibration.hpp"

namespace hg::sm90 {

constexpr Readable readable{.as_is = &OperandFacts::tma, .copies_thin = true};

// What the copies add to a GEMM, in microseconds. Called while plan.workspace is the size of the copies.
inline double predict_repack(const Problem& p, const Plan& plan, const Factors& factors = {})
{
    // Fitted: EXPERIMENTS.md#repack.
    constexpr double fixed_us = 1.5, bytes_per_us = 1.95e6, batch_factor = 1.26;
    if (!plan.repacks())
        return 0;
    return (factors.fixed * fixed_us +
            factors.memory * static_cast<double>(plan.workspace) / bytes_per_us) *
           (p.batch > 1 ? batch_factor : 1.0);
}

}  // namespace hg::sm90
