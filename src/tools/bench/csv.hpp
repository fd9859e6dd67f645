// Measurements as CSV: "# name: value" lines about the machine, a heading, one line a product.
#pragma once

#include "src/tools/bench/measurement.hpp"

#include <fstream>

namespace hg::bench {

class Csv {
public:
    // Writes what was measured before, then each line as it comes. "" writes nothing.
    Csv(const std::string& path, const Machine& machine, const std::vector<Measurement>& before);
    void write(const Measurement& measurement);

private:
    std::ofstream file_;
};

// Columns are found by name; those that follow from others are not read. Without one of outputs all are
// plain. An unfinished last line, as a run that was killed leaves it, is left out. A file without the
// columns m, n, k and ours is none; one that the run was killed before it wrote them may be read.
enum class Unfinished { Refused, Allowed };
Run read_csv(const std::string& path, Unfinished unfinished = Unfinished::Refused);

}  // namespace hg::bench
