// The conformance suite: families of cases over an Engine. They report into a Suite rather than to
// GoogleTest, so that the suite itself can be tested on engines with known defects.
#pragma once

#include "engine.hpp"
#include "trial.hpp"

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace hg::test {

class Suite {
public:
    // Runs about one in `thinning` cases and ends after `max_failures` failures.
    explicit Suite(Engine& engine, unsigned thinning = 1, size_t max_failures = 5)
        : engine_(engine), thinning_(thinning), max_failures_(max_failures)
    {
    }

    Engine& engine() { return engine_; }
    bool thinned() const { return thinning_ > 1; }
    // Is the next case to be run?
    bool next() { return failures_.size() < max_failures_ && hash(7, seen_++) % thinning_ == 0; }

    // Runs the case and compares everything with the reference. `edit` may change the trial before.
    void check(const GemmCase& description, const std::function<void(Trial&)>& edit = nullptr);
    // Uploads, runs and downloads; false if there is then nothing to compare.
    bool run(const GemmCase& description, Trial& trial);
    // Demands that each result is the expected one, bit for bit.
    using Expectation = std::function<double(int64_t z, int64_t row, int64_t column)>;
    void expect_same(const GemmCase& description, const Trial& trial, const Expectation& expected);
    void fail(const GemmCase& description, const std::string& text);

    int cases() const { return cases_; }
    int not_applicable() const { return not_applicable_; }
    const std::vector<std::string>& failures() const { return failures_; }
    // "cases 96, |error| / bound: max 0.41, mean 0.08"
    std::string summary() const;

private:
    Engine& engine_;
    unsigned thinning_;
    size_t max_failures_;
    uint64_t seen_ = 0;
    int cases_ = 0, not_applicable_ = 0;
    double max_ratio_ = 0, sum_ratio_ = 0;
    int64_t elements_ = 0;
    std::vector<std::string> failures_;
};

// HGEMM_TEST_THINNING=n runs one case in n, for devices that are slow.
unsigned thinning(unsigned otherwise = 1);

inline constexpr hgemm_layout_t layouts[] = {HGEMM_ROW_MAJOR, HGEMM_COL_MAJOR};
inline constexpr hgemm_op_t ops[] = {HGEMM_NO_TRANS, HGEMM_TRANS};
inline constexpr hgemm_type_t halves[] = {HGEMM_F16, HGEMM_BF16};
inline constexpr hgemm_type_t types[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};

struct Family {
    const char* name;
    void (*run)(Suite&);

    friend std::ostream& operator<<(std::ostream& out, const Family& family) { return out << family.name; }
};

// families_exact.cpp
void sizes(Suite&);
void combinations(Suite&);
void ragged_lines(Suite&);
void rounding(Suite&);
void special_values(Suite&);
void unread_operands(Suite&);
void accumulator_width(Suite&);
// families_general.cpp
void random_data(Suite&);
void long_sums(Suite&);
void batches(Suite&);
void epilogues(Suite&);
void fences(Suite&);
// families_metamorphic.cpp
void repetition(Suite&);
void scaling(Suite&);
void row_order(Suite&);
void swapped_operands(Suite&);
void zero_columns(Suite&);
void batch_split(Suite&);
void rows_alone(Suite&);
void freivalds(Suite&);

std::span<const Family> families();

}  // namespace hg::test
