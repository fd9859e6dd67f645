// What the emulator complains about.
#pragma once

#include "ptx/module.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace emu {

// What a kind of report is worth; report.cpp has the table of kinds.
enum class ReportClass : uint8_t {
    Defect,     // another order of events gives other results, no end or a fault
    Departure,  // against PTX's document, in a way that GPUs are known to tolerate
    Harmless    // worth a look, without effect on what the kernel does
};
constexpr size_t report_classes = 3;

ReportClass class_of(std::string_view kind);  // throws std::logic_error for a kind that the table lacks
std::string_view name_of(ReportClass value);

// EMU_STRICT: which reports fail a launch.
enum class Strict : uint8_t { Off, Defects, Document };
bool fails(ReportClass value, Strict strict);

// A hazard that a GPU might or might not show: a race, a missing fence, an unaligned collective.
struct Report {
    std::string kind;  // "race", "uninitialised-read", "mbarrier-overrun", ...: one of report.cpp's table
    std::string kernel;
    std::string text;    // both sides of a race, barrier states, ...
    std::string source;  // the PTX line
    int line = 0;
    std::vector<ptx::SourceLine> origins;  // that it was compiled from, and the calls around
    uint32_t cta[3] = {};
    int warp = -1, lane = -1;
    uint64_t count = 1;  // times seen; equal kind and line are one report

    std::string print() const;
};

// On one line: a report, anything else of a class, kind and text, a string.
std::string json(const Report& report);
std::string json_event(std::string_view what, std::string_view kind, std::string_view text);
std::string json_text(std::string_view text);

using ReportCounts = std::array<uint64_t, report_classes>;  // by class

// Defects first. Of many of one kind in one kernel the first are given in full, eight defects or one of
// another class, and the rest in a line with their number.
std::vector<std::string> digest(std::span<const Report> reports);
std::string tally(const ReportCounts& counts);  // "1 defect, 0 departures from the document, 2 harmless"

class Reports {
public:
    void add(Report report);  // throws Fault for the first one if that is asked for
    void stop_at_first() { stops_ = true; }
    const std::vector<Report>& all() const { return reports_; }
    ReportCounts places() const;  // reports
    ReportCounts times() const;   // the same, each as often as it was seen
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
