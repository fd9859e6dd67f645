// The products of a log: what HGEMM_LOG=trace writes of each call that is not a repeated one.
#pragma once

#include "src/tools/bench/product.hpp"

#include <cstddef>
#include <cstdint>
#include <istream>
#include <vector>

namespace hg::bench {

struct Traced {
    std::vector<Product> products;  // each once, in the order of the log
    size_t not_understood = 0;      // commands that are none
};

// Looks for "hgemm-bench compare --shapes ... --dtype ... --layout ... [--output ...]" in each line. All
// products get the offset and the pad, which logs do not tell.
Traced read_traces(std::istream& log, int64_t offset = 0, int64_t pad = 0);

}  // namespace hg::bench
