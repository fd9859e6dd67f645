// Measures which kernel is the fastest for a problem, on the handle's stream.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"
#include "src/tune/contest.hpp"

#include <string>

namespace hg {

struct TuneSettings {
    int candidates = 12;  // beside the library's own choice
    ContestRules rules;
    double seconds = 0;  // 0: no limit
};

// Kernels are texts as tuning files have them.
struct Tuned {
    bool complete = true;  // false: the time was over, and the handle uses what it used before
    int candidates = 0, wrong = 0, failed = 0, rounds = 0;
    std::string built_in, before, now, wrong_kernels;
    double built_in_us = 0, before_us = 0, now_us = 0;
    double gain = 1, spread = 0;

    bool is_built_in() const { return now == built_in; }
};

// The handle computes on a GPU whose context is current. Its choices stay as they are.
Status measure(Handle& handle, const Problem& problem, const TuneSettings& settings, Tuned& tuned);

}  // namespace hg
