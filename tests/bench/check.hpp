// Is a result right? Compared with float64 against the published error bound.
#pragma once

#include "data.hpp"

#include <functional>

namespace hg::bench {

// The bound on the sum of k products is ceil(k / step) * factor * 2^-23 * sum|a b|.
struct Arithmetic {
    int64_t step;
    double factor;
};
Arithmetic arithmetic_of(int cc);  // compute capability, 90 for 9.0; 0: the host

struct Verdict {
    double error;  // the largest |D - exact| / bound; right if at most 1
    bool pads_intact;

    bool right() const { return error <= 1 && pads_intact; }
};

// Fill D with NaN, run `multiply`, which returns when D is written, and compare: every element of a small
// product, of a larger one its last row and column and many random elements. `split` is in how many slices
// k may have been summed.
Verdict check(const Numbers& numbers, const Product& product, Operands& operands,
              const Arithmetic& arithmetic, int64_t split, const std::function<void()>& multiply);

}  // namespace hg::bench
