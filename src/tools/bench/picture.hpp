// Pictures of a run, as SVG.
#pragma once

#include "src/tools/bench/measurement.hpp"
#include "src/tools/bench/region.hpp"

namespace hg::bench {

// Achieved TFLOP/s against arithmetic intensity, under the device's limits where they are known.
std::string roofline(const Run& run, const Limits& limits);

// Ratios over m and n, geometric mean over everything else: one map for each baseline.
std::string ratio_map(const Run& run);

}  // namespace hg::bench
