// Plans copies of operands that TMA cannot address: aligned rows in the workspace, which it can.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/repack/config.hpp"
#include "src/backend.hpp"

namespace hg::sm90 {

// Decides which operands are copied; false where `room` bytes do not suffice.
bool plan_repack(const Facts& facts, size_t room, Plan& plan);

// The problem whose operands are the copies in `workspace`.
Problem repacked(const Problem& problem, const Plan& plan, void* workspace);

// What the copies add to a GEMM, in microseconds.
double predict_repack(const Problem& problem, const Plan& plan);

// Fills the parameters of sm90_repack; returns how many tiles it copies.
int64_t pack_repack(const Problem& problem, const Plan& plan, void* workspace, RepackParams& params);

}  // namespace hg::sm90
