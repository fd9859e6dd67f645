#include "src/tuning/file.hpp"

#include "src/base/escape.hpp"
#include "src/plan/options.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

namespace hg {
namespace {

constexpr std::string_view format_version = "1", device_name = "device ", library_name = "library ";

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes and returns what comes before the separator, which is removed too.
std::string_view take_until(std::string_view& text, char separator)
{
    const std::string_view first = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(first.size() + 1, text.size()));
    return first;
}

std::string_view take_word(std::string_view& text)
{
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return take_until(text, ' ');
}

std::string_view without_blanks_around(std::string_view text)
{
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

// "<m>x<n>x<k>", perhaps a batch, and a comma.
bool is_key(std::string_view text)
{
    std::string_view sizes = take_until(text, ',');
    int count = 0;
    for (; !sizes.empty(); ++count)
        if (const std::string_view size = take_until(sizes, 'x');
            size.empty() || !std::ranges::all_of(size, is_digit))
            return false;
    return !text.empty() && (count == 3 || count == 4);
}

bool is_number(std::string_view text)
{
    const std::string_view whole = take_until(text, '.');
    return !whole.empty() && std::ranges::all_of(whole, is_digit) && std::ranges::all_of(text, is_digit);
}

bool is_date(std::string_view text)
{
    constexpr std::string_view pattern = "dddd-dd-dd";
    return std::ranges::equal(text, pattern,
                              [](char c, char p) { return p == 'd' ? is_digit(c) : c == p; });
}

bool has(std::string_view word, std::string_view name, bool (*is_value)(std::string_view))
{
    return word.starts_with(name) && is_value(word.substr(name.size()));
}

const char* wrong_with_kernel(std::string_view text)
{
    Options options{};
    std::string_view unknown;
    const size_t length = std::min(text.find('/'), text.size());
    if (length == 0 || length >= sizeof options.kernel)
        return "the second word is no kernel";
    return read_kernel(text, options, unknown) ? nullptr : "the kernel has an unknown setting";
}

// Null for an entry.
const char* read_entry(std::string_view line, TuningEntry& entry)
{
    std::string_view rest = line;
    entry.key = take_word(rest);
    entry.kernel = take_word(rest);
    entry.measured = rest = without_blanks_around(rest);
    if (!is_key(entry.key))
        return "the first word is no problem";
    if (const char* const wrong = wrong_with_kernel(entry.kernel))
        return wrong;
    const bool measured =
        has(take_word(rest), "us=", is_number) && has(take_word(rest), "built_in_us=", is_number) &&
        has(take_word(rest), "spread=", is_number) && has(take_word(rest), "date=", is_date);
    return measured && rest.empty() ? nullptr : "us, built_in_us, spread and date must follow the kernel";
}

std::string quoted(std::string_view text)
{
    char shown[256];
    escape(text, shown, sizeof shown);
    return std::string("'") + shown + "'";
}

// Why a header line that must begin with `name` and go on with `value` does not; "" if it does.
std::string refuse_header(std::string_view line, std::string_view name, std::string_view value)
{
    if (!line.starts_with(name))
        return "it has no line '" + std::string(name.substr(0, name.size() - 1)) + "' where one must be";
    line.remove_prefix(name.size());
    if (line == value)
        return "";
    return "it is of another " + std::string(name == tuning_format ? "format, version " : name) +
           quoted(line) + ", not " + quoted(value);
}

// Adds what the line says to the result, or says why it says nothing.
const char* read_line(std::string_view line, TuningText& result)
{
    if (line.size() > max_tuning_line)
        return "it is too long";
    if (has_control(line))
        return "it has control characters";
    std::string_view rest = line;
    if (take_word(rest) == calibration_word) {
        CalibrationLine calibration;
        const char* const wrong = read_calibration_line(line, calibration);
        if (!wrong)
            result.calibration.push_back(calibration);
        return wrong;
    }
    TuningEntry entry;
    const char* const wrong = read_entry(line, entry);
    if (!wrong)
        result.entries.push_back(entry);
    return wrong;
}

// The last entry of each key stays.
void sort(std::vector<TuningEntry>& entries)
{
    const auto by_key = [](const TuningEntry& x, const TuningEntry& y) { return x.key < y.key; };
    const auto same_key = [](const TuningEntry& x, const TuningEntry& y) { return x.key == y.key; };
    std::ranges::reverse(entries);
    std::ranges::stable_sort(entries, by_key);
    entries.erase(std::unique(entries.begin(), entries.end(), same_key), entries.end());
}

}  // namespace

std::string TuningEntry::line() const
{
    std::string text;
    for (const std::string_view part : {key, kernel, measured})
        text.append(text.empty() ? "" : " ").append(part);
    return text + '\n';
}

TuningOrigin::TuningOrigin(const Device& d, int sm_count) : library(hgemm_build_info())
{
    char text[192], name[sizeof d.name];
    escape(d.name, name, sizeof name);
    std::snprintf(text, sizeof text, "%s, compute capability %d.%d, %d SMs, L2 %lld KiB, memory %lld GB/s",
                  name, d.cc / 10, d.cc % 10, sm_count, static_cast<long long>(d.l2_bytes / 1024),
                  static_cast<long long>(d.memory_bandwidth / 1'000'000'000));
    device = text;
}

std::string TuningOrigin::header() const
{
    std::string text;
    text.append(tuning_format).append(format_version).append("\n");
    text.append(device_name).append(device).append("\n");
    text.append(library_name).append(library).append("\n");
    return text;
}

TuningText parse_tuning(std::string_view text, const TuningOrigin& origin)
{
    const std::pair<std::string_view, std::string_view> header[] = {
        {tuning_format, format_version}, {device_name, origin.device}, {library_name, origin.library}};
    TuningText result;
    size_t known = 0, number = 0;  // lines of the header, and of all
    while (!text.empty()) {
        std::string_view line = take_until(text, '\n');
        ++number;
        if (line.ends_with('\r'))
            line.remove_suffix(1);
        if (number > 1 && (line.starts_with('#') || line.find_first_not_of(' ') == line.npos))
            continue;
        if (known < std::size(header)) {
            result.refusal = refuse_header(line, header[known].first, header[known].second);
            if (!result.refusal.empty())
                return result;
            ++known;
            continue;
        }
        const char* const wrong = read_line(line, result);
        if (!wrong)
            continue;
        if (result.bad_lines.size() < TuningText::max_bad_lines)
            result.bad_lines.push_back({number, wrong});
        else
            ++result.more_bad_lines;
    }
    if (known < std::size(header))
        result.refusal = "its header is not complete";
    sort(result.entries);
    return result;
}

}  // namespace hg
