// All kernels, or some, each in a process that outlives no broken context.
#pragma once

#include "kernel.hpp"

#include <functional>

namespace emu::silicon {

struct Job {
    const Family* family;
    uint32_t seed;
};

// Jobs of one family, or of all; of one seed, or of all (negative).
std::vector<Job> select_jobs(const std::string& family, int seed);

struct Outcome {
    Job job;
    std::string text;  // hash of the output, or "failed" and why

    bool failed() const { return text.starts_with("failed"); }
};
struct Results {
    std::string device;  // lines that describe it
    std::vector<Outcome> outcomes;
};

// Runs everything; raw outputs go to files in `dump` unless it is empty. A kernel that ends its process, or
// takes too long, fails alone.
Results run_jobs(const std::vector<Job>& jobs, const std::string& dump);

}  // namespace emu::silicon
