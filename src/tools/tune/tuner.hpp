// hgemm-tune: measures the promising kernels for each product and writes the fastest to a tuning file.
#pragma once

#include "src/tools/bench/device.hpp"
#include "src/tune/contest.hpp"

#include <csignal>
#include <string>
#include <vector>

namespace hg::bench {

struct TuneOptions {
    std::vector<Product> products;
    DeviceOptions device;
    ContestRules rules;
    int candidates = 12;  // for each product, beside the library's own choice
    bool batch_invariant = false;
    std::string out;  // "": the tuning file that the library reads
    bool dry_run = false;
    unsigned seed = 1;  // of the orders in which candidates take turns
};

// Writes what it finds and prints a line after each product, so that nothing is lost when it ends.
// `interrupted` is set by a signal. Returns 0; 1 if a kernel gave a wrong result or did not run, or a
// product could not be measured; 130 if it was interrupted.
int tune(const TuneOptions& options, const volatile std::sig_atomic_t& interrupted);

}  // namespace hg::bench
