// Where a GEMM runs: on the CPU, or staged to the GPU if that is expected to be faster.
#pragma once

#include "src/base/status.hpp"

#include <cstdint>

namespace hg::cblas {

// The same GEMM with row-major operands.
hgemm_args_t row_major(const hgemm_args_t& args);

// Some rows and columns of a row-major GEMM, with all of K.
hgemm_args_t part(const hgemm_args_t& args, int64_t row, int64_t rows, int64_t column, int64_t columns);

// The rates behind the choice. The GPU's are fitted to 78 problems that `hgemm-cblas-crossover` timed on 16
// cores and an H200 (tests/bench/results/h200_cblas_crossover.csv). The host's are those whose choices cost
// least over the faster side: 0.6 % on average, 36 % at most.
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
// Cores that this process may use; the prediction divides the host's work by them.
int available_cores();

Forecast forecast(const hgemm_args_t& args, int cores, const Rates& rates = {});

// A staged GEMM is divided by columns, which bounds how much of B is on the device at a time.
struct Blocks {
    int64_t resident_bytes = int64_t{1} << 30;
};

// These functions take a row-major GEMM with checked arguments.
Status run(const hgemm_args_t& args);  // wherever it is expected to be faster
Status run_on_host(const hgemm_args_t& args);
// If something fails on the GPU, the host computes the rest. NO_DEVICE if there is no GPU.
Status run_on_gpu(const hgemm_args_t& args, const Blocks& blocks = {});

}  // namespace hg::cblas
