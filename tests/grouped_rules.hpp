// Grouped GEMMs, compared with their groups computed one by one.
#pragma once

#include "buffer.hpp"
#include "library.hpp"
#include "src/tools/support/reference.hpp"

#include <string>
#include <vector>

namespace hg::test {

// If `exact`, A and B are integers so small that every sum is exact before its one rounding to D's type.
struct GroupedCase {
    hgemm_grouping_t grouping = HGEMM_GROUPED_CONTIGUOUS;
    std::vector<int64_t> rows;  // of each group
    int64_t n = 1, k = 1;
    hgemm_type_t type_ab = HGEMM_F16, type_d = HGEMM_F16;
    hgemm_op_t transb = HGEMM_TRANS;
    float alpha = 1, beta = 0;
    int64_t room = 0;   // rows more than a masked group needs, or before and behind contiguous ones
    int64_t shift = 0;  // elements from the last 16-byte boundary to A, B and D
    int64_t pad = 0;    // elements between their rows
    bool null_operands = false;
    bool ends = false,
         narrow = false;  // contiguous groups by ends, which have no room before; sizes of 32 bits
    hgemm_activation_t activation = HGEMM_ACTIVATION_NONE;
    hgemm_gate_t gate = {};
    bool bias = false;
    hgemm_type_t type_bias = HGEMM_F16;
    bool aux = false;
    int64_t aux_pad = 0, aux_shift = 0;  // as pad and shift
    bool exact = true;                   // else sums are rounded, and expect_right() is not for them

    int64_t width() const { return gate.block != 0 ? n / 2 : n; }  // of D
    std::string describe() const;
};

// A grouped GEMM with its data.
class GroupedTrial {
public:
    GroupedTrial(Memory& memory, const GroupedCase& grouped);

    hgemm_grouped_args_t args() const;  // without host groups' problems
    hgemm_status_t start(Library& library) const;
    hgemm_status_t run(Library& library) const { return library.wait(start(library)); }
    // Sets other groups of the same rows, or of as many as there is room for, and restores D and aux.
    void set_rows(const std::vector<int64_t>& rows);
    // Sets the sizes that the kernel reads, whatever rows are expected.
    void set_sizes(const std::vector<int64_t>& sizes);
    // Compares all that lies in D and in aux.
    void expect_right();

    // What was written, without a comparison. Nothing else may have changed.
    void download();
    const Buffer& d() const { return d_; }
    const Buffer& aux() const { return aux_; }
    // The group of each row; -1: of none.
    std::vector<int64_t> owners() const;

private:
    // Contiguous groups are rows of one matrix; the others have one each.
    bool contiguous() const { return g_.grouping == HGEMM_GROUPED_CONTIGUOUS; }
    int64_t groups() const { return std::ssize(g_.rows); }
    bool along_k() const { return g_.transb != HGEMM_NO_TRANS; }

    void fill();
    void fill_aux();
    void send_sizes();
    std::vector<hgemm_args_t> problems() const;
    double before(int64_t z, int64_t row, int64_t j) const
    {
        return before_[static_cast<size_t>((z * lines_ + row) * g_.width() + j)];
    }
    // What an element of aux is that no group owns.
    double aux_before(int64_t z, int64_t row, int64_t j) const;
    struct Lines {
        Dense value, error, aux;
    };
    Lines expected() const;
    void expect_group(const Dense& product, int64_t first, Lines& d) const;
    void expect_elements(const char* what, const Buffer& buffer, const Dense& right,
                         const Dense& error) const;

    GroupedCase g_;
    std::vector<int64_t> offsets_;
    int64_t lines_;
    Buffer a_, b_, d_, bias_, aux_;
    std::vector<double> before_;  // D
    Block sizes_;
};

// Sizes, types, layouts and alignments, for kernels that take groups of any size.
std::vector<GroupedCase> grouped_cases(hgemm_grouping_t grouping);

// The same with gates.
std::vector<GroupedCase> gated_cases(hgemm_grouping_t grouping);

// Some of both, with a bias for each group.
std::vector<GroupedCase> biased_cases(hgemm_grouping_t grouping);

// With gates and aux: what one kernel serves, and what is cut into parts.
std::vector<GroupedCase> aux_cases(hgemm_grouping_t grouping);

// Runs the grouped GEMM. False if it is not supported.
bool check_grouped(Library& library, const GroupedCase& grouped);

// In batch-invariant mode aux has the bits of the same call without gates, which `plain` computes, and D
// those that it has without aux. The number of cases that `gated` serves.
int check_bits_of_aux(Library& gated, Library& plain, hgemm_grouping_t grouping);

}  // namespace hg::test
