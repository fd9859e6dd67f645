// Copies of operands that TMA cannot address, with lines that it can, in the workspace.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/repack/config.hpp"
#include "src/backend.hpp"

namespace hg::sm90 {

// Decide which operands are copied; false where `room` bytes do not suffice.
bool plan_repack(const Facts& facts, size_t room, Plan& plan);

// The problem that is left once the copies are in `workspace`.
Problem repacked(const Problem& problem, const Plan& plan, void* workspace);

// What the copies add to a GEMM, in microseconds.
double predict_repack(const Problem& problem, const Plan& plan);

// What the kernel is told, and how many tiles it has.
int64_t pack_repack(const Problem& problem, const Plan& plan, void* workspace, RepackParams& params);

}  // namespace hg::sm90
