// One kernel text, run on the emulator with all checks.
#pragma once

#include "mutation/kernels.hpp"

#include <string>
#include <vector>

namespace mutation {

struct Trial {
    std::string kind;      // of the first report or fault, "refused", or nothing
    std::string message;   // its text
    uint64_t results = 0;  // hash of them, if there was no report
    bool correct = true;   // if it was verified
    double seconds = 0;
    std::vector<int> executed;     // lines of the text, the first is 1
    std::vector<int> group_waits;  // those of waits for groups that had something to wait for
};
Trial run_trial(const Kernel& kernel, const std::string& text, int shape, uint64_t seed,
                bool verify = false);

}  // namespace mutation
