// Several functions that compute the same product, timed in turn.
#pragma once

#include "src/tools/bench/gpu_timer.hpp"

namespace hg::bench {

struct PairedOptions {
    int launches, pairs;
    bool noise;                    // time the last arm twice each time
    std::function<void()> busy{};  // called once while the GPU works on the first arm
};

struct Paired {
    std::vector<double> us;      // median time of each arm
    std::vector<double> ratios;  // median over the pairs of its time / the first arm's
    double aa_spread;            // interquartile range of the last arm's time / its own; NaN without noise
};

// A, B, ... and then ..., B, A, over and over: each arm follows each other equally often.
Paired time_paired(GpuTimer& timer, const std::vector<Operands>& sets, const std::vector<Multiply>& arms,
                   const PairedOptions& options);

}  // namespace hg::bench
