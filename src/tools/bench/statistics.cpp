#include "src/tools/bench/statistics.hpp"

#include <algorithm>

namespace hg::bench {

double quantile(std::vector<double> values, double which)
{
    if (values.empty())
        return unknown;
    std::sort(values.begin(), values.end());
    const double position = which * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double geomean(const std::vector<double>& values)
{
    double logs = 0;
    for (const double value : values)
        logs += std::log(value);
    return values.empty() ? unknown : std::exp(logs / static_cast<double>(values.size()));
}

Spread spread_of(std::vector<double> ratios)
{
    constexpr double slow = 0.98;
    std::erase_if(ratios, [](double ratio) { return !known(ratio); });
    if (ratios.empty())
        return {};
    const auto count = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r < slow; });
    return {ratios.size(),          geomean(ratios),
            quantile(ratios, 0.05), median(ratios),
            quantile(ratios, 0.95), static_cast<double>(count) / static_cast<double>(ratios.size())};
}

}  // namespace hg::bench
