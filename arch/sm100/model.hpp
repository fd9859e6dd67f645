// The cost model of sm100: how long a candidate takes.
#pragma once

#include "arch/sm100/config.hpp"
#include "arch/sm100/cycles.hpp"
#include "src/plan/backend.hpp"

#include <limits>

namespace hg::sm100 {

struct Candidate {
    int kernel;
    bool swap_ab;
    int split;         // slices of K
    int64_t clusters;  // tiles of D, of all problems of a batch
};

Pipeline pipeline_of(const Config& config, int split);

// Microseconds.
double predict(const Problem& problem, const Device& device, const Candidate& candidate, int sm_count,
               double limit = std::numeric_limits<double>::infinity());

}  // namespace hg::sm100
