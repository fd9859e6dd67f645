// What physics allows, and the regions of the shape map that are reported apart.
#pragma once

#include "product.hpp"

#include <vector>

namespace hg::bench {

// Of an H200, as measured: the floor of every time is taken from these.
constexpr double peak_flops = 800e12, peak_bytes = 4.3e12, launch_us = 2;

double floor_us(const Product& product);
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
