// Rates of the forecast from measured times.
#pragma once

#include "route.hpp"

#include <vector>

namespace hg::cblas {

// A product and what it took on either side, in microseconds.
struct Times {
    hgemm_args_t product;
    double host_us, gpu_us;
};

// The rates whose forecasts are off by the smallest factors, all products counting alike. gpu_flops_per_us
// stays: staged products are bound by what is moved.
Rates fit(const std::vector<Times>& times, int cores);

// What choosing by these rates takes, beside the faster side of each product: the geometric mean of the
// factor, and the largest.
struct Loss {
    double mean, most;
};
Loss loss_of(const std::vector<Times>& times, int cores, const Rates& rates);

}  // namespace hg::cblas
