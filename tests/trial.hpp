// A GemmCase with its operands in memory: filled, passed to the library, judged against the reference.
#pragma once

#include "gemm_case.hpp"
#include "src/tools/support/reference.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hg::test {

struct Verdict {
    bool passed = true;
    std::string message;
    // Error relative to the bound, over the inexact fp32 results alone: the rounding of a narrower type
    // would hide the error of the sums.
    double max_ratio = 0, sum_ratio = 0;
    int64_t elements = 0;
};

class Trial {
public:
    // Value of element (row, column) of op(A), op(B) or C in the z-th matrix in memory.
    using Generator = std::function<double(int64_t z, int64_t row, int64_t column)>;

    Trial(const GemmCase& description, Memory& memory);  // filled with the case's data
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    void fill_a(const Generator& value) { fill(a_, case_.a_by_rows(), value); }
    void fill_b(const Generator& value) { fill(b_, case_.b_by_rows(), value); }
    void fill_c(const Generator& value) { fill(stored_c(), case_.d_by_rows(), value); }
    void fill_bias(const Generator& value) { fill(bias_, true, value); }  // its elements are one row
    void poison_a();                                                      // NaN in every element
    void poison_b();
    void poison_c();
    // New values for scalars in memory; upload() puts them there. Scalars in the call stay.
    void set_scalars(float alpha, float beta);

    // The call: pointers into the memory. upload() goes before it, download() behind it.
    const hgemm_args_t& args() const { return args_; }
    void upload();
    void download();

    // Compares result and memory with the reference; after download().
    Verdict judge(const Arithmetic& arithmetic);
    // Checks only that nothing but D and aux was written, or with `none` nothing at all.
    Verdict judge_memory(bool none);

    // Element (row, column) of problem z's result.
    double result(int64_t z, int64_t row, int64_t column) const { return at(d_, z, row, column); }
    double aux(int64_t z, int64_t row, int64_t column) const { return at(aux_, z, row, column); }
    // The first `rows` rows of problem 0's result, one after the other.
    std::vector<double> results(int64_t rows) const;

    // The generators that a trial is filled with.
    static Generator data_a(const GemmCase& g);
    static Generator data_b(const GemmCase& g);
    static Generator data_c(const GemmCase& g);
    static double draw(Data data, uint64_t seed, uint64_t index);

private:
    void fill(Buffer& buffer, bool by_rows, const Generator& value);
    void fill_with_data();
    void fill_args();
    void make_pointer_arrays();
    Buffer& stored_c() { return case_.in_place ? d_ : c_; }
    // Which matrix of the buffer problem z of a pointer-array batch is: not the z-th.
    int64_t slot(const Buffer& buffer, int64_t z) const;
    double at(const Buffer& buffer, int64_t z, int64_t row, int64_t column) const;
    double bias(int64_t z, int64_t row, int64_t column) const;
    Dense dense(const Buffer& buffer, bool by_rows, int64_t z, int64_t rows, int64_t columns) const;
    bool only_scales_c() const;
    bool leaves_c_alone() const;
    // The product, C and the bias of each element.
    void expect(int64_t z, const Arithmetic& arithmetic, Dense& value, Dense& error) const;
    // What D is made of that.
    Estimate expect_d(const Dense& value, const Dense& error, int64_t i, int64_t j) const;
    void compare(const char* what, const Buffer& buffer, int64_t z, int64_t i, int64_t j,
                 const Estimate& wanted, bool has_sign, Verdict& verdict) const;
    void judge_problem(int64_t z, const Arithmetic& arithmetic, Verdict& verdict) const;
    // An element of the half of D that is not computed.
    void judge_other_half(int64_t z, int64_t i, int64_t j, Verdict& verdict) const;

    GemmCase case_;
    Memory& memory_;
    Buffer a_, b_, c_, d_, aux_, bias_;
    Block arrays_, scalars_;
    hgemm_args_t args_{};
    bool exact_;
    std::vector<Dense> read_c_, read_d_;  // C and D before the call, for each problem
};

}  // namespace hg::test
