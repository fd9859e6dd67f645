// The cost model of sm100: how long a way to run a problem takes.
#pragma once

#include "arch/sm100/config.hpp"
#include "arch/sm100/cycles.hpp"
#include "src/problem.hpp"

namespace hg::sm100 {

// One way: a row, its orientation, slices of k. `clusters` counts tiles, of all problems.
struct Candidate {
    int kernel;
    bool swap_ab;
    int split;
    int64_t clusters;
};

Pipeline pipeline_of(const Config& config, int split);

// Microseconds.
double predict(const Problem& problem, const Config& config, const Candidate& candidate, int sm_count);

}  // namespace hg::sm100
