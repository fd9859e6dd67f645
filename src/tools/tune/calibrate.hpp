// hgemm-tune --calibrate: fits the cost models of the backends that serve this GPU to measurements.
#pragma once

#include "src/tools/bench/device.hpp"
#include "src/tools/tune/fit.hpp"
#include "src/tune/store.hpp"

#include <csignal>
#include <string>
#include <vector>

namespace hg::bench {

struct CalibrateOptions {
    DeviceOptions device;           // with a budget
    std::string backend;            // "": those that the library asks for aligned operands
    std::vector<Product> products;  // none: those of calibration_products()
    int rounds = 3;                 // graphs of each plan
    std::string out;                // "": the tuning file that the library reads
    bool dry_run = false;           // writes nothing
    bool always = false;            // writes also where the library's choices are better without
};

// Prints what was found and writes it to the tuning file. Returns 0; 1 if a backend could not be
// calibrated; 130 if it was interrupted, and nothing is written then.
int calibrate(const CalibrateOptions& options, const volatile std::sig_atomic_t& interrupted);

// The lines of a backend's fit; without one those that it may have had go.
Outcomes outcomes_of(const Backend& backend, const Fit* fit);

}  // namespace hg::bench
