// The baseline that the column `best` stands for.
#pragma once

#include "src/tools/bench/measurement.hpp"

#include <string>
#include <vector>

namespace hg::bench {

// "cublas", the default: the fastest of what cuBLASLt's heuristic proposes; in `kernels`, cublasGemmEx.
// "mma-sync": the fastest of cuBLASLt's own kernels for Ampere, on an H100 or H200 (mma_sync.hpp).
inline const std::string cublas_baseline = "cublas", mma_sync_baseline = "mma-sync";
inline const std::vector<std::string> baseline_names = {cublas_baseline, mma_sync_baseline};

// Of a run, by what the first lines of its CSV file say; they are silent about the default.
std::string baseline_of(const Machine& machine);

std::string best_title(const std::string& baseline);  // "best of cuBLASLt", as tables and pictures call it

// Throws std::runtime_error if a file of measurements is of another baseline than what would be added.
void require_same_baseline(const std::string& path, const Machine& of_file, const std::string& wanted);

}  // namespace hg::bench
