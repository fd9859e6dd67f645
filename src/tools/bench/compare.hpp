// `hgemm-bench compare`: the library beside cublasGemmEx and a baseline of cuBLASLt, all checked first.
#pragma once

#include "src/tools/bench/device.hpp"
#include "src/tools/bench/files.hpp"

namespace hg::bench {

struct CompareOptions {
    std::vector<Product> products;
    DeviceOptions device;
    Files files;
    std::string backend, kernel;  // as in HGEMM_BACKEND and HGEMM_KERNEL
    hgemm_mode_t mode = HGEMM_MODE_DEFAULT;
    int pairs = 7;
    int algorithms = 16;           // heuristic results of cuBLASLt that are tried
    bool noise = false;            // the baseline against itself at every product, not at each eighth
    bool hot = false;              // also with operands that stay in the L2 cache, below 20 MB
    bool batch_invariant = false;  // also the library in that mode
    bool resume = false;           // leave out what the CSV file has
};

// Prints a table and a summary; 0 if every result was right.
int compare(const CompareOptions& options);

}  // namespace hg::bench
