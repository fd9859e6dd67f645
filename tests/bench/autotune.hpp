// The fastest of cuBLASLt's algorithms for a product, found by timing them.
#pragma once

#include "cublaslt.hpp"
#include "gpu_timer.hpp"

namespace hg::bench {

// Each algorithm is timed on one pass over the sets, then the best three in turn, forwards and backwards.
// The winner's position in the list; -1 if none runs.
int fastest(GpuTimer& timer, const std::vector<Operands>& sets, const CublasLt::Algorithms& algorithms);

}  // namespace hg::bench
