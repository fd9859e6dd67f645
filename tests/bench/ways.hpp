// `hgemm-bench ways`: ways to run products, as `hgemm-ways list` writes them, timed in turn.
#pragma once

#include "device.hpp"

namespace hg::bench {

struct WaysOptions {
    std::string file;  // lines of "m n k layout way" and more, which is ignored; a product's lines together
    std::string out;   // file for the lines with microseconds, "" for none
    std::string dtype = "bf16";
    DeviceOptions device;
    int rounds = 4;     // graphs of each way
    int handles = 64;   // kept at a time, one a way; each has a workspace of its own, 200 MB
    unsigned seed = 1;  // of the orders in which a product's ways take turns
};

// Prints a line a product, and by how much what the library chooses misses the fastest; 0 if every result
// was right.
int time_ways(const WaysOptions& options);

}  // namespace hg::bench
