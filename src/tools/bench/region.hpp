// The time that the hardware allows, and the regions of the shape map that are reported apart.
#pragma once

#include "src/tools/bench/product.hpp"
#include "src/tools/bench/statistics.hpp"

#include <string>
#include <vector>

namespace hg::bench {

// A second, of a device at its highest clocks; unknown for most.
struct Limits {
    double flops = unknown, bytes = unknown;
};
Limits limits_of(const std::string& device);  // by the name that CUDA has for it
// No product takes less, but for what is left of its operands in the L2 cache. Unknown without limits.
double floor_us(const Product& product, const Limits& limits);

// What an H200 takes that computes and reads as fast as it does for long: regions are defined by it, and
// how many launches are timed.
double ideal_us(const Product& product);
const char* bound_of(const Product& product);  // "compute" or "memory", whichever takes longer

// tiny, gemv, decode, thin-K, deep-K, mid, large or odd.
const char* region_of(const Product& product);

// A part of the shape map with the ratios that it must reach.
struct Goal {
    const char* name;
    bool (*has)(const Product& product);
    double vs_default, vs_best;
    double max_below;  // share of shapes that may be under 0.98; 1: no limit
};
const std::vector<Goal>& goals();

}  // namespace hg::bench
