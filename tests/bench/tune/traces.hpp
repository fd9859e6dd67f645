// The products of a log: what HGEMM_LOG=trace writes of each call that is not a repeated one.
#pragma once

#include "product.hpp"

#include <istream>
#include <vector>

namespace hg::bench {

struct Traced {
    std::vector<Product> products;  // each once, in the order of the log
    size_t not_understood = 0;      // commands that are none
};

// Looks for "hgemm-bench compare --shapes ... --dtype ... --layout ... [--output ...]" in each line.
Traced read_traces(std::istream& log);

}  // namespace hg::bench
