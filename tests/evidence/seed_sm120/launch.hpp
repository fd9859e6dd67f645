// The article's kernels as `hgemm-bench kernels` times them beside the library's.
#pragma once

#include "src/tools/bench/kernels.hpp"

namespace hg::seed {

// Loads the image for the current device. Throws std::runtime_error.
std::vector<bench::OtherKernel> open_kernels();

}  // namespace hg::seed
