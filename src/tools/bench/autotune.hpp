// The fastest of cuBLASLt's algorithms for a product, found by timing them.
#pragma once

#include "src/tools/bench/cublaslt.hpp"
#include "src/tools/bench/gpu_timer.hpp"

namespace hg::bench {

// Each algorithm is timed on one pass over the sets, then the best three in turn, forwards and backwards.
// The winner's position in the list; -1 if none runs.
int fastest(GpuTimer& timer, const std::vector<Operands>& sets, const CublasLt::Algorithms& algorithms);

// The same for a list of hundreds: two launches of each show which few are worth that much time. Those few
// must be right; others take the places of the wrong ones.
int fastest_of_many(GpuTimer& timer, const std::vector<Operands>& sets,
                    const CublasLt::Algorithms& algorithms, const std::function<bool(size_t)>& is_right);

// Of candidates 0 ... count - 1 the `keep` fastest that are right, the fastest first. time_us is called
// once for each; NaN is one that does not run. is_right is called in the order of speed, until `keep` are
// found.
std::vector<size_t> shortlist(size_t count, size_t keep, const std::function<double(size_t)>& time_us,
                              const std::function<bool(size_t)>& is_right);

}  // namespace hg::bench
