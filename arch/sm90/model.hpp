// The cost model of sm90: how long a candidate takes, in microseconds.
#pragma once

#include "arch/sm90/config.hpp"
#include "src/problem.hpp"

namespace hg::sm90 {

double predict(const Problem& problem, const Config& config, bool swapped, int split, int64_t tiles,
               int sm_count);

}  // namespace hg::sm90
