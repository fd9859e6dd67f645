// `hgemm-bench candidates`: candidates for GEMMs, as `hgemm-candidates list` writes them, timed in turn.
#pragma once

#include "src/tools/bench/device.hpp"

namespace hg::bench {

struct CandidatesOptions {
    // Lines of "m n k layout candidate" and more, which is ignored; those of one product together.
    std::string file;
    std::string out;  // file for the lines with microseconds, "" for none
    std::string dtype = "bf16";
    DeviceOptions device;
    int rounds = 4;      // graphs of each candidate
    int handles = 64;    // kept at a time, one a candidate; each has a workspace of its own, 200 MB
    bool tuned = false;  // `auto`, the library's choice, is what it chooses with its tuning file
    unsigned seed = 1;   // of the orders in which a product's candidates take turns
};

// Prints a line a product, and by how much what the library chooses misses the fastest; 0 if every result
// was right.
int time_candidates(const CandidatesOptions& options);

}  // namespace hg::bench
