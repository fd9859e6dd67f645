// The text of a tuning file: a header that says where it was measured, then a line for each problem with
// the kernel that was fastest there, and lines of the calibration. src/tools/tune/README.md#the-file.
#pragma once

#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hg {

constexpr size_t max_tuning_bytes = size_t{16} << 20, max_tuning_line = 1024;
constexpr std::string_view tuning_format = "libhgemm-tuning ";  // what every tuning file begins with

// What the header of a file says; other files are not trusted.
struct TuningOrigin {
    std::string device, library;

    TuningOrigin(const Device& device, int sm_count);
    std::string header() const;
};

// One line: "<key> <kernel> us=<time> built_in_us=<time> spread=<part of the time> date=<YYYY-MM-DD>". Only
// key and kernel count here; the rest is for people and for hgemm-tune. A cut line lacks some of it.
struct TuningEntry {
    std::string_view key;
    std::string_view kernel;    // with settings, as HGEMM_KERNEL has it
    std::string_view measured;  // "us=..." and what follows

    std::string line() const;
};

struct TuningText {
    std::string refusal;               // why nothing of the text holds; "" if it does
    std::vector<TuningEntry> entries;  // sorted by key, one for each: of several the last line holds
    std::vector<CalibrationLine> calibration;  // as they follow each other in the text

    struct BadLine {
        size_t number;
        const char* reason;
    };
    static constexpr size_t max_bad_lines = 8;
    std::vector<BadLine> bad_lines;  // the first ones
    size_t more_bad_lines = 0;
};

// The entries and the names of calibrations lie in `text`.
TuningText parse_tuning(std::string_view text, const TuningOrigin& origin);

}  // namespace hg
