#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/measurement.hpp"
#include "src/tools/bench/picture.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/bench/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hg::bench {
namespace {

using Ratio = double Measurement::*;
constexpr double cell_width = 46, cell_height = 20, left = 70, top = 70;

// Red where we are slower, white at 1, green where we are faster; full colour at a factor of 1.5.
std::string color_of(double ratio)
{
    const double strength = std::min(1.0, std::fabs(std::log(ratio)) / std::log(1.5));
    const int faded = static_cast<int>(255 - 175 * strength);
    return ratio >= 1 ? fmt::format("rgb({0},255,{0})", faded) : fmt::format("rgb(255,{0},{0})", faded);
}

struct Axes {
    std::vector<int64_t> m, n;
};

Axes axes_of(const std::vector<Measurement>& rows)
{
    std::set<int64_t> m, n;
    for (const Measurement& row : rows) {
        m.insert(row.product.m);
        n.insert(row.product.n);
    }
    return {{m.begin(), m.end()}, {n.begin(), n.end()}};
}

void draw(Svg& svg, const Axes& axes, const std::vector<Measurement>& rows, Ratio ratio, double x0,
          const std::string& title)
{
    svg.text(x0, top - 46, title, "start", 14);
    svg.text(x0, top - 25, "N (columns of D)");
    svg.text(x0 - 10, top - 6, "M (rows)", "end");
    for (size_t j = 0; j < axes.n.size(); ++j)
        svg.text(x0 + (static_cast<double>(j) + 0.5) * cell_width, top - 6, std::to_string(axes.n[j]),
                 "middle", 11);
    std::map<std::pair<int64_t, int64_t>, std::vector<double>> cells;
    for (const Measurement& row : rows)
        if (known(row.*ratio))
            cells[{row.product.m, row.product.n}].push_back(row.*ratio);
    for (size_t i = 0; i < axes.m.size(); ++i) {
        const double y = top + static_cast<double>(i) * cell_height;
        svg.text(x0 - 10, y + cell_height * 0.7, std::to_string(axes.m[i]), "end", 11);
        for (size_t j = 0; j < axes.n.size(); ++j) {
            const auto found = cells.find({axes.m[i], axes.n[j]});
            if (found == cells.end())
                continue;
            const double x = x0 + static_cast<double>(j) * cell_width, value = geomean(found->second);
            svg.rectangle(x, y, cell_width - 1, cell_height - 1, color_of(value),
                          fmt::format("m {}, n {}: {:.3f}, {}", axes.m[i], axes.n[j], value,
                                      counted(found->second.size(), "product")));
            svg.text(x + cell_width / 2, y + cell_height * 0.7, fmt::format("{:.2f}", value), "middle", 11);
        }
    }
}

}  // namespace

std::string ratio_map(const Run& run)
{
    const Axes axes = axes_of(run.rows);
    const double map_width = left + std::max(7.0, static_cast<double>(axes.n.size())) * cell_width + 30;
    const double bottom = top + static_cast<double>(axes.m.size()) * cell_height;
    Svg svg(2 * map_width, bottom + 50);
    draw(svg, axes, run.rows, &Measurement::ratio_default, left, "Time of cublasGemmEx / time of libhgemm");
    draw(svg, axes, run.rows, &Measurement::ratio_best, map_width + left,
         "Time of the " + best_title(baseline_of(run.machine)) + " / time of libhgemm");
    svg.text(left, bottom + 20, "Above 1 (green): libhgemm is faster. Below 1 (red): libhgemm is slower.");
    svg.text(left, bottom + 38,
             "A cell is the geometric mean over K and types; an empty one was not measured.");
    return svg.finish();
}

}  // namespace hg::bench
