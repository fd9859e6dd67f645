// What became of the mutants: the list and its totals.
#pragma once

#include "mutation/rules.hpp"

#include <ostream>
#include <string>
#include <vector>

namespace mutation {

struct Result {
    std::string kernel;
    Mutant mutant;
    std::string statement;  // that was changed
    std::string how;        // kind of the report that caught it, or nothing
    int shape = -1;         // and the run
    uint64_t seed = 0;

    bool caught() const { return !how.empty(); }
    bool counts() const { return mutant.equivalent.empty(); }
};

struct Totals {
    int caught = 0, all = 0;
};
Totals totals_of(const std::vector<Result>& results);

void write_list(std::ostream& out, const std::vector<Result>& results);    // as CSV
void write_totals(std::ostream& out, const std::vector<Result>& results);  // as Markdown

}  // namespace mutation
