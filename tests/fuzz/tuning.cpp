// Target: text for the reader of tuning files. What it takes for an entry lies in the text and is read
// again as the same one; a file that it refuses has none.
#include "report.hpp"
#include "src/plan/dispatch.hpp"
#include "src/tuning/file.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hg::fuzz {
namespace {

// The corpus names them.
TuningOrigin origin()
{
    TuningOrigin here(Device{}, 1);
    here.device = "a device";
    here.library = "a library";
    return here;
}

void check_lies_in(std::string_view text, std::string_view part)
{
    if (part.empty() || std::less()(part.data(), text.data()) ||
        std::less()(text.data() + text.size(), part.data() + part.size()))
        wrong("an entry has a part that is not in the text");
}

bool is_same(const TuningEntry& x, const TuningEntry& y)
{
    return x.key == y.key && x.kernel == y.kernel && x.measured == y.measured;
}

void check(std::string_view text, const TuningText& read)
{
    if (!read.refusal.empty() &&
        (!read.entries.empty() || !read.calibration.empty() || !is_one_line(read.refusal)))
        wrong("refused with %zu entries: %s", read.entries.size(), read.refusal.c_str());
    size_t last = 3;  // lines of the header
    for (const auto& [number, reason] : read.bad_lines) {
        if (number <= last || !is_one_line(reason))
            wrong("line %zu after line %zu is bad: %s", number, last, reason);
        last = number;
    }
    if (last > 3 + static_cast<size_t>(std::ranges::count(text, '\n')))
        wrong("line %zu is bad, and there are fewer", last);
    for (const TuningEntry& entry : read.entries)
        for (const std::string_view part : {entry.key, entry.kernel, entry.measured})
            check_lies_in(text, part);
    for (const CalibrationLine& line : read.calibration) {
        check_lies_in(text, line.name);
        check_lies_in(text, line.text);
        for (const NamedFactor& factor : named_factors)
            if (const double value = line.factors.*factor.value;
                !(value >= min_factor && value <= max_factor))
                wrong("the factor %s is %g", factor.name, value);
    }
}

bool is_same_line(const CalibrationLine& x, const CalibrationLine& y)
{
    return x.name == y.name && x.factors == y.factors && x.kernels == y.kernels && x.text == y.text;
}

// A backend is calibrated by its own line with as many lines of kernels as it says.
void check_calibration(const std::vector<CalibrationLine>& lines)
{
    std::vector<std::string> remarks;
    const Calibration calibration = calibrate(lines, all_backends(), remarks);
    if (remarks.size() < calibration.backends.size() ||
        !std::ranges::all_of(remarks, [](const std::string& remark) { return is_one_line(remark); }))
        wrong("%zu remarks on %zu backends", remarks.size(), calibration.backends.size());
    for (const BackendCalibration& backend : calibration.backends)
        for (const Factors& factors : backend.factors)
            for (const NamedFactor& factor : named_factors)
                if (!(factors.*factor.value > 0))
                    wrong("the factor %s is %g", factor.name, factors.*factor.value);
}

void run(std::string_view text)
{
    const TuningText read = parse_tuning(text, origin());
    check(text, read);
    std::string written = origin().header();
    for (const TuningEntry& entry : read.entries)
        written += entry.line();
    for (const CalibrationLine& line : read.calibration)
        written += line.line();
    const TuningText again = parse_tuning(written, origin());
    if (!again.refusal.empty() || !again.bad_lines.empty() ||
        !std::ranges::equal(read.entries, again.entries, is_same) ||
        !std::ranges::equal(read.calibration, again.calibration, is_same_line))
        wrong("entries are read in another way when they were written: %s", written.c_str());
    check_calibration(read.calibration);
}

}  // namespace
}  // namespace hg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::run({reinterpret_cast<const char*>(data), size});
    return 0;
}
