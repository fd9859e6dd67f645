// Where a product runs: on the CPU, or staged to the GPU when that is expected to be faster.
#pragma once

#include "src/status.hpp"

#include <cstdint>

namespace hg::cblas {

// The same product with row-major operands.
hgemm_args_t row_major(const hgemm_args_t& args);

// Rows and columns of a row-major product, with all of k.
hgemm_args_t part(const hgemm_args_t& args, int64_t row, int64_t rows, int64_t column, int64_t columns);

// What the choice is made from: the times of 78 products that `hgemm-cblas-crossover` measured on 16 cores
// and an H200 (tests/bench/results/h200_cblas_crossover.csv). The GPU's rates are fitted to them; the
// host's are those whose choices lose least over the faster side: 0.6 % in the mean, 36 % at most.
struct Rates {
    double gpu_start_us = 30.8;           // launches, events and copies of nothing
    double staged_bytes_per_us = 1.31e4;  // copies into pinned memory, which the transfers hide behind
    double gpu_flops_per_us = 3e8;
    double host_start_us = 10;
    double host_flops_per_us = 4e3;  // of one core
};

struct Forecast {
    double host_us, gpu_us;
};
// Of this process: what the forecast divides the host's work by.
int available_cores();

Forecast forecast(const hgemm_args_t& args, int cores, const Rates& rates = {});

// How a staged product is divided: by columns, so that no more of B lies on the device at a time.
struct Blocks {
    int64_t resident_bytes = int64_t{1} << 30;
};

// All of these take a row-major product of arguments that were checked.
Status run(const hgemm_args_t& args);  // wherever it is expected to be faster
Status run_on_host(const hgemm_args_t& args);
// What the GPU leaves undone because something failed is done by the host. NO_DEVICE if there is no GPU.
Status run_on_gpu(const hgemm_args_t& args, const Blocks& blocks = {});

}  // namespace hg::cblas
