// What the emulator complains about.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace emu {

// A hazard that a GPU might or might not show: a race, a missing fence, an unaligned collective.
struct Report {
    std::string kind;    // "race", "uninitialised-read", "mbarrier-overrun", ...: stable words for tests
    std::string kernel;
    std::string text;    // both sides of a race, barrier states, ...
    std::string source;  // the PTX line
    int line = 0;
    uint32_t cta[3] = {};
    int warp = -1, lane = -1;
    uint64_t count = 1;  // times seen; equal kind and line are one report

    std::string print() const;
};

class Reports {
public:
    void add(Report report);  // throws Fault for the first one if that is asked for
    void stop_at_first() { stops_ = true; }
    const std::vector<Report>& all() const { return reports_; }
    void clear() { reports_.clear(); }

private:
    std::vector<Report> reports_;
    bool stops_ = false;
};

// What ends a launch: out-of-bounds access, deadlock, trap. The driver turns it into a CUresult.
class Fault : public std::runtime_error {
public:
    Fault(std::string kind, const std::string& text) : std::runtime_error(text), kind(std::move(kind)) {}
    std::string kind;  // "out-of-bounds", "misaligned", "deadlock", "trap", ...
};

}  // namespace emu
