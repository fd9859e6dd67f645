// Is a result right? Compared with float64 against the published error bound.
#pragma once

#include "data.hpp"

#include <functional>
#include <limits>

namespace hg::bench {

// The bound on the sum of k products is ceil(k / step) * factor * 2^-23 * sum|a b|.
struct Arithmetic {
    int64_t step;
    double factor;
};
Arithmetic arithmetic_of(int cc);  // compute capability, 90 for 9.0; 0: the host

struct Verdict {
    double error;  // the largest |D - exact| / bound; right if at most 1
    bool guards_intact;

    bool right() const { return error <= 1 && guards_intact; }
    // The error, infinite where something outside of D was written.
    double any_error() const { return guards_intact ? error : std::numeric_limits<double>::infinity(); }
};

// What a product of one set of operands must give: float64 sums at sampled elements, for any number of
// implementations. All rows of a small D are looked at, of a larger one the last and some random ones.
class Expectation {
public:
    Expectation(const Numbers& numbers, const Product& product, const Operands& operands,
                const Arithmetic& arithmetic);

    // Fill D with NaN, run `multiply`, which returns when D is written, and compare. `split` is in how many
    // slices k may have been summed. An element that is still NaN, even an unsampled one of the rows, or a
    // write outside of D is wrong.
    Verdict check(test::Memory& memory, int64_t split, const std::function<void()>& multiply) const;

private:
    struct Sample {
        size_t row;  // of rows_
        int64_t column;
        double sum, magnitude;
    };
    void choose();
    void add_up(const Numbers& numbers, Sample& sample) const;
    double error(const Sample& sample, int64_t split, double result) const;

    Product product_;
    Operands operands_;
    Arithmetic arithmetic_;
    std::vector<int64_t> rows_;
    std::vector<Sample> samples_;
};

}  // namespace hg::bench
