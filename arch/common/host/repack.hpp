// Plans copies of operands that a backend's kernels cannot read: aligned rows in the workspace, which they
// can.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/common/repack/config.hpp"
#include "src/plan/backend.hpp"

namespace hg {

// What a backend's kernels can read.
struct Readable {
    bool OperandFacts::*as_is;  // which of the facts says that an operand needs no copy
    bool copies_thin;  // operands of few rows, contiguous along them, are better copied all the same
};

// Decides which operands are copied, and sets plan.workspace; false where `room` bytes do not suffice.
bool plan_repack(const Facts& facts, const Readable& readable, size_t room, Plan& plan);

// The problem whose operands are the copies in `workspace`.
Problem repacked(const Problem& problem, const Plan& plan, void* workspace);

// Fills the parameters of the copying kernel; returns how many tiles it copies.
int64_t pack_repack(const Problem& problem, const Plan& plan, void* workspace, RepackParams& params);

// How many CTAs may copy at a time on `sm_count` SMs, all of the device or, if `limited`, as many as the
// caller allows.
constexpr int64_t max_copying_ctas(int sm_count, bool limited)
{
    return int64_t{sm_count} * (limited ? 1 : repack_ctas_per_sm);
}

// How `kernel`, the copying one, is launched before a plan's own kernel.
Plan plan_of_copies(const Plan& plan, int kernel, int64_t tiles, int64_t max_ctas);

}  // namespace hg
