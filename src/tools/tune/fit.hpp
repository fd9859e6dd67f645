// Fits a backend's calibration to times that were measured on a device.
#pragma once

#include "src/plan/calibration.hpp"
#include "src/plan/problem.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace hg::bench {

// What a plan took for a problem.
struct Timing {
    size_t number;  // of the problem, whose timings lie side by side
    Problem problem;
    Plan plan;
    double us;
    bool is_own = false;  // is the plan what the library chooses without a calibration?
};

struct Fit {
    Factors common;              // of all kernels of the backend
    std::vector<Factors> own;    // of each kernel beside those
    std::vector<bool> is_known;  // was the kernel timed?

    Factors of(int kernel) const { return common * own[static_cast<size_t>(kernel)]; }
    BackendCalibration calibration(const Backend& backend) const;
};

// Least squares of logarithms, from the cost model as it is. What all plans of a problem have in common
// counts little, since no choice depends on it, and slow plans count little. The constants of the fit were
// tried on the measurements of an H100 (hgemm-calibration).
Fit fit(const Backend& backend, const Device& device, std::span<const Timing> timings);

// What the cost model expects with these factors.
std::vector<double> predict_timings(const Backend& backend, const Device& device, const Fit& fit,
                                    std::span<const Timing> timings);

// How many times as long as the fastest plan that was timed the chosen one takes: geometric means.
struct Costs {
    double own;         // what the library chooses without a calibration
    double calibrated;  // by fits to three quarters of the problems, for the problems of the other quarter
    size_t problems;

    // Is it worth writing?
    bool is_better() const { return calibrated + 0.002 < own; }
};
Costs costs_of(const Backend& backend, const Device& device, std::span<const Timing> timings);

// ... of the plans with the least predictions.
double cost_of(std::span<const Timing> timings, std::span<const double> predicted);

}  // namespace hg::bench
