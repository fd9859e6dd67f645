// What was measured, as text and as JSON.
#pragma once

#include "src/tools/bench/measurement.hpp"

namespace hg::bench {

std::string heading(const Machine& machine);  // also names the columns of line()
std::string line(const Measurement& measurement);

// Ratios by region, and of what is not plain by output; the goals, the ten worst products, the noise.
std::string summary(const Run& run);

std::string json(const Run& run);

}  // namespace hg::bench
