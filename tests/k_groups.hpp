// Grouped GEMMs whose groups divide K: HGEMM_GROUPED_K.
#pragma once

#include "buffer.hpp"
#include "library.hpp"

#include <string>
#include <vector>

namespace hg::test {

// A and B are integers so small that every sum is exact before its one rounding to D's type.
struct KGroupsCase {
    std::vector<int64_t> counts;  // K of each group
    int64_t m = 1, n = 1;
    hgemm_type_t type_ab = HGEMM_F16, type_d = HGEMM_F32;
    hgemm_op_t transa = HGEMM_TRANS, transb = HGEMM_NO_TRANS;
    float alpha = 1, beta = 0;
    int64_t room = 0;   // K of no group before the first and behind the last
    int64_t shift = 0;  // elements from the last 16-byte boundary to A, B and D
    int64_t pad = 0;    // elements between lines
    bool ends = false, narrow = false;

    std::string describe() const;
};

// One call with its data.
class KGroupsTrial {
public:
    KGroupsTrial(Memory& memory, const KGroupsCase& grouped);

    hgemm_grouped_args_t args() const;
    hgemm_status_t run(Library& library) const { return library.wait(start(library)); }
    hgemm_status_t start(Library& library) const;
    // Other groups of as much K in all, and D as it was.
    void set_counts(const std::vector<int64_t>& counts);
    // The sizes that the kernel reads, whatever is expected.
    void set_sizes(const std::vector<int64_t>& sizes);
    // Compares all that lies in D.
    void expect_right();

private:
    bool a_by_k() const { return g_.transa == HGEMM_NO_TRANS; }
    bool b_by_k() const { return g_.transb != HGEMM_NO_TRANS; }
    double a(int64_t i, int64_t p) const { return a_by_k() ? a_.get(0, i, p) : a_.get(0, p, i); }
    double b(int64_t p, int64_t j) const { return b_by_k() ? b_.get(0, j, p) : b_.get(0, p, j); }
    void fill();
    void send_sizes();

    KGroupsCase g_;
    int64_t k_;
    Buffer a_, b_, d_;
    std::vector<double> before_;  // D
    Block sizes_;
};

std::vector<KGroupsCase> k_groups_cases();
// Runs it and compares.
void check_k_groups(Library& library, const KGroupsCase& grouped);
// All cases, and what is refused.
void check_k_groups(Library& library);

}  // namespace hg::test
