// Is a result right? Compared with float64 against the published error bound.
#pragma once

#include "src/tools/bench/data.hpp"
#include "src/tools/support/reference.hpp"

#include <functional>
#include <limits>

namespace hg::bench {

// The bound on the sum of k products is ceil(k / step) * factor * 2^-23 * sum|a b|.
struct Arithmetic {
    int64_t step;
    double factor;
};
Arithmetic arithmetic_of(int cc);  // compute capability, 90 for 9.0; 0: the host

// How a library computes GELU: Approximate is the GPU's tanh.approx, whose relative error is 2^-11.
enum class Tanh { Exact, Approximate };

struct Verdict {
    double error;  // the largest |D - exact| / bound, of aux as well; right if at most 1
    bool guards_intact;

    bool right() const { return error <= 1 && guards_intact; }
    // The error, infinite where something outside of D and aux was written.
    double any_error() const { return guards_intact ? error : std::numeric_limits<double>::infinity(); }
};

// What a product of one set of operands must give: float64 sums at sampled elements, for any number of
// implementations. All rows of a small D are looked at, of a larger one the last and some random ones;
// those of a batch are one D below the other.
class Expectation {
public:
    Expectation(const Numbers& numbers, const Product& product, const Operands& operands,
                const Arithmetic& arithmetic);

    // Fill D with C, or NaN if that is not read, and aux with NaN, run `multiply`, which returns when they
    // are written, and compare. `split` is in how many slices k may have been summed. An element that is
    // still NaN, even an unsampled one of the rows, or a write outside of D and aux is wrong.
    Verdict check(test::Memory& memory, int64_t split, const std::function<void()>& multiply,
                  Tanh tanh = Tanh::Exact) const;

private:
    // A sum of products of elements.
    struct Sum {
        double value = 0, magnitude = 0;
    };
    struct Sample {
        size_t row;  // of rows_
        int64_t column;
        Sum sum{}, gated{};      // the second of what the first gates
        double c = 0, bias = 0;  // what is added, C as scaled
    };
    // D or aux, and how it was computed.
    struct Result {
        const void* begin;
        hgemm_activation_t activation;
        int64_t split;
        Tanh tanh;
    };
    void choose();
    void add_up(Sample& sample) const;
    Sum sum_at(int64_t row, int64_t column) const;
    // The result of a sample, with the error that it may have before it is rounded to D's type.
    test::Estimate estimate(const Sample& sample, const Result& result) const;
    void prepare(test::Memory& memory) const;
    std::vector<unsigned char> lines_of(test::Memory& memory, const Result& result) const;
    void judge(test::Memory& memory, const Result& result, Verdict& verdict) const;
    double error(const Sample& sample, const Result& result, double value) const;

    const Numbers& numbers_;
    Product product_;
    Operands operands_;
    Arithmetic arithmetic_;
    std::vector<int64_t> rows_;
    std::vector<Sample> samples_;
};

}  // namespace hg::bench
