// The lists of products: named sets, files, and what the command line spells out.
#pragma once

#include "src/tools/bench/product.hpp"

#include <vector>

namespace hg::bench {

struct Selection {
    std::string shapes;              // "MxNxK,..." or "MxNxKxBATCH,..."
    std::vector<std::string> files;  // one shape a line, or CSV with columns m, n, k and maybe batch
    std::vector<std::string> sets;   // square, llm, grid, odd, mirror, batch, all
    std::string dtype = "f16";       // f16, bf16, both
    std::vector<std::string> layouts = {"tn"};
    std::vector<std::string> outputs = {"plain"};
    int64_t offset = 0, pad = 0;
    std::string sample = "160/1";  // of the grid's 1000 points: how many, and the seed
};

// Every list, for every type, layout and output. Throws std::runtime_error for what it does not understand.
std::vector<Product> select(const Selection& selection);

}  // namespace hg::bench
