// What was measured of one product, and where. A NaN is what was not measured.
#pragma once

#include "src/tools/bench/product.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/statistics.hpp"

#include <map>
#include <vector>

namespace hg::bench {

struct Measurement {
    Product product{};
    std::string kernel;        // ours
    double ours_us = unknown;  // of one launch on the GPU; cublasGemmEx; what baseline.hpp calls best
    double default_us = unknown, best_us = unknown;
    double ratio_default = unknown, ratio_best = unknown;  // median over pairs of baseline / ours
    double floor_us = unknown;                             // what the device's limits allow
    double aa_spread = unknown;  // interquartile range of the ratio of cublasGemmEx to itself
    double hot_us = unknown, hot_ratio_default = unknown, hot_ratio_best = unknown;  // operands in L2
    std::string invariant_kernel;  // ours in batch-invariant mode
    double invariant_us = unknown;
    double invariant_cost = unknown;                      // median over pairs of its time / ours
    double host_us = unknown, default_host_us = unknown;  // of one call on the host
    // Of the bound: right up to 1.
    double error = unknown, default_error = unknown, best_error = unknown, invariant_error = unknown;
    int best_rank = -1, algorithms = 0;  // which of so many algorithms of cuBLASLt was the fastest
    // Of the baseline mma-sync: which configuration that was, and how many there were of each algorithm id.
    std::string best_algorithm, best_tried;
    std::string no_best;  // why a baseline that was asked for is not there; not in the CSV
    int pairs = 0, sets = 0, launches = 0, sm_mhz = 0;
    double watts = unknown;

    double tflops() const { return product.flops() / ours_us * 1e-6; }
    double gbps() const { return product.bytes() / ours_us * 1e-3; }
};

// Device, driver, versions, clocks, date: name and value in the order of the names.
using Machine = std::map<std::string, std::string>;

// Of the machine's device.
inline Limits limits_of(const Machine& machine)
{
    const auto device = machine.find("device");
    return device == machine.end() ? Limits() : limits_of(device->second);
}

struct Run {
    Machine machine;
    std::vector<Measurement> rows;
};

}  // namespace hg::bench
