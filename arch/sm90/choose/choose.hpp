// Problem and Device -> Plan: which kernel runs the problem, and how. README.md has the order of decisions.
#pragma once

#include "arch/common/host/facts.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

#include <cstddef>

namespace hg::sm90 {

// Words that are 0 between kernels and lie behind a workspace of that many bytes: counters of arrivals, and
// room for the partial sums of sm90_splitk_global_*, a tile of 128 x 128 for each SM but at most a quarter
// of the workspace.
size_t counter_words(const Device& device, size_t workspace);

// Microseconds that the cost model expects of a plan that copies no operands.
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

// Fills the plan; false with plan.refusal set when no kernel, or not the forced one, fits the problem.
bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);
// Parts of that: a KERNEL, and those for half of a symmetric D, for a K that is cut into leaves, and for a
// gated D.
bool choose_gemm(const Facts& facts, const Device& device, const Options& options, Plan& plan);
bool choose_gated(const Problem& problem, const Device& device, const Options& options, Plan& plan);
bool choose_triangle(const Problem& problem, const Device& device, const Options& options, Plan& plan);
bool choose_tree(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm90
