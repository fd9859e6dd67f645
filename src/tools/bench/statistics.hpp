// Statistics of times and ratios. A NaN stands for a value that was not measured and is left out.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace hg::bench {

constexpr double unknown = NAN;
inline bool known(double value) { return !std::isnan(value); }

double quantile(std::vector<double> values, double which);  // linear between neighbours; NaN of nothing
inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }
double geomean(const std::vector<double>& values);
// "1 product", "2 products"
inline std::string counted(size_t count, const std::string& what)
{
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Of ratios: how many times faster we are than a baseline.
struct Spread {
    size_t count = 0;
    double geomean = unknown, p5 = unknown, p50 = unknown, p95 = unknown;
    double below = unknown;  // share of ratios under 0.98
};
Spread spread_of(std::vector<double> ratios);

}  // namespace hg::bench
