#include "src/plan/calibration.hpp"

#include "src/base/decimal.hpp"

#include <algorithm>
#include <charconv>

namespace hg {
namespace {

std::string_view take_word(std::string_view& text)
{
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    return word;
}

template <typename Number>
bool read_number(std::string_view text, Number& number)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

bool is_date(std::string_view text)
{
    constexpr std::string_view pattern = "dddd-dd-dd";
    return std::ranges::equal(text, pattern,
                              [](char c, char p) { return p == 'd' ? c >= '0' && c <= '9' : c == p; });
}

const char* read_factor(std::string_view name, std::string_view value, Factors& factors)
{
    const auto* const named = std::ranges::find(named_factors, name, &NamedFactor::name);
    if (named == std::end(named_factors))
        return "a calibration has no factor of that name";
    double& factor = factors.*named->value;
    // Not a number compares false.
    if (!read_number(value, factor) || !(factor >= min_factor && factor <= max_factor))
        return "a factor must be a number from 0.125 to 8";
    return nullptr;
}

// The last line with that name, or null.
const CalibrationLine* find_line(std::span<const CalibrationLine> lines, std::string_view name)
{
    for (size_t i = lines.size(); i-- > 0;)
        if (lines[i].name == name)
            return &lines[i];
    return nullptr;
}

}  // namespace

Factors operator*(const Factors& x, const Factors& y)
{
    Factors product;
    for (const NamedFactor& factor : named_factors)
        product.*factor.value = x.*factor.value * y.*factor.value;
    return product;
}

KernelFactors::KernelFactors(const Device& device, const KernelInfo* kernels)
{
    if (device.calibration)
        for (const BackendCalibration& backend : device.calibration->backends)
            if (backend.kernels == kernels)
                factors_ = backend.factors.data();
}

std::string calibration_line(std::string_view name, const Factors& factors, int kernels,
                             std::string_view date)
{
    std::string text = calibration_key(name);
    for (const auto& [factor, value] : named_factors)
        if (kernels >= 0 || factors.*value != 1) {
            text.append(" ").append(factor).append("=").append(fixed(factors.*value, 4).text());
        }
    if (kernels >= 0)
        text.append(" kernels=").append(std::to_string(kernels));
    return text.append(" date=").append(date).append("\n");
}

const char* read_calibration_line(std::string_view text, CalibrationLine& line)
{
    line = {};
    line.text = text;
    take_word(text);
    line.name = take_word(text);
    if (line.name.empty())
        return "a calibration has no name";
    for (std::string_view date; date.empty();) {
        const std::string_view word = take_word(text), name = word.substr(0, word.find('='));
        const std::string_view value = word.substr(std::min(name.size() + 1, word.size()));
        if (name == "kernels") {
            if (!read_number(value, line.kernels) || line.kernels < 0)
                return "the kernels of a calibration must be a number";
        } else if (name == "date") {
            date = value;
            if (!is_date(date))
                return "a calibration must end with its date";
        } else if (word.empty()) {
            return "a calibration must end with its date";
        } else if (const char* const wrong = read_factor(name, value, line.factors)) {
            return wrong;
        }
    }
    return take_word(text).empty() ? nullptr : "a calibration must end with its date";
}

Calibration calibrate(std::span<const CalibrationLine> lines, std::span<const Backend* const> backends,
                      std::vector<std::string>& remarks)
{
    Calibration calibration;
    for (const Backend* backend : backends) {
        const CalibrationLine* const common = find_line(lines, backend->name);
        BackendCalibration found{backend->kernels, {}};
        int count = 0;
        for (int i = 0; i < backend->kernel_count; ++i) {
            const CalibrationLine* const own = find_line(lines, backend->kernels[i].name);
            count += own != nullptr;
            found.factors.push_back((common ? common->factors : Factors()) *
                                    (own ? own->factors : Factors()));
        }
        if (!common && count == 0)
            continue;
        const std::string name = backend->name;
        if (!backend->predict_plan)
            remarks.push_back("the calibration of " + name + " is not used: the backend has no cost model");
        else if (!common)
            remarks.push_back("the calibration of " + name + " is not used: it has no line of its own");
        else if (common->kernels != count)
            remarks.push_back("the calibration of " + name + " is not used: it has lines of " +
                              std::to_string(count) + " kernels, not " + std::to_string(common->kernels));
        else {
            remarks.push_back("backend " + name + " is calibrated");
            calibration.backends.push_back(std::move(found));
        }
    }
    return calibration;
}

}  // namespace hg
