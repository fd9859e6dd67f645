// `hgemm-bench demo`: real products on the machine's GPU, or its CPU, checked and timed.
#pragma once

namespace hg::bench {

// Prints a table; 0 if every result was right.
int demo();

}  // namespace hg::bench
