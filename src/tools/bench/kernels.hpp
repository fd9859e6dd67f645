// `hgemm-bench kernels`: every kernel of the library that can serve a product, each forced in turn.
#pragma once

#include "src/tools/bench/device.hpp"

namespace hg::bench {

// A kernel that is not the library's, to be timed beside its own.
struct OtherKernel {
    std::string name;
    std::function<bool(const Product&)> serves;
    std::function<void(const Product&, const Operands&, CUstream_st*)> multiply;
};

struct KernelsOptions {
    std::vector<Product> products;
    DeviceOptions device;
    std::vector<std::string> kernels;  // empty: all
    std::vector<OtherKernel> others;
    std::string csv;  // file to write, "" for none
    int pairs = 3;
    double within = 3;    // kernels that take longer than so many times the fastest are timed once
    bool resume = false;  // leave out the products that the CSV file has
};

// Prints a table; 0 if every result was right.
int time_kernels(const KernelsOptions& options);

}  // namespace hg::bench
