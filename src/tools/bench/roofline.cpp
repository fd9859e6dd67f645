#include "src/tools/bench/measurement.hpp"
#include "src/tools/bench/picture.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/svg.hpp"
#include "src/tools/support/number.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hg::bench {
namespace {

constexpr double width = 900, height = 600, plot_left = 70, plot_right = 740, plot_top = 60,
                 plot_bottom = 540;

struct Color {
    const char *region, *color;
};
constexpr Color colors[] = {{"tiny", "#7f7f7f"},  {"gemv", "#8c564b"},   {"decode", "#2ca02c"},
                            {"mid", "#1f77b4"},   {"thin-K", "#9467bd"}, {"deep-K", "#17becf"},
                            {"large", "#d62728"}, {"odd", "#ff7f0e"}};

const char* color_of(const Product& product)
{
    for (const Color& each : colors)
        if (std::string(each.region) == region_of(product))
            return each.color;
    return "black";
}

double limit(const Limits& limits, double intensity)
{
    return std::min(limits.flops, intensity * limits.bytes) * 1e-12;
}

void draw_axes(Svg& svg, const LogAxis& x, const LogAxis& y)
{
    for (double value = x.least; value <= x.most * 1.01; value *= 10) {
        svg.line(x.at(value), plot_top, x.at(value), plot_bottom, "#dddddd");
        svg.text(x.at(value), plot_bottom + 18, fmt::format("{:g}", value), "middle");
    }
    for (double value = y.least; value <= y.most * 1.01; value *= 10) {
        svg.line(plot_left, y.at(value), plot_right, y.at(value), "#dddddd");
        svg.text(plot_left - 8, y.at(value) + 4, fmt::format("{:g}", value), "end");
    }
    svg.text((plot_left + plot_right) / 2, plot_bottom + 42, "arithmetic intensity, flop a byte", "middle",
             14);
    svg.text(plot_left, plot_top - 10, "TFLOP/s", "middle", 14);
}

void draw_limits(Svg& svg, const LogAxis& x, const LogAxis& y, const Limits& limits)
{
    const double ridge = limits.flops / limits.bytes;
    const double first = std::max(x.least, y.least * 1e12 / limits.bytes);
    const double top_speed = y.at(limit(limits, ridge));
    svg.line(x.at(first), y.at(limit(limits, first)), x.at(ridge), top_speed, "black", 2);
    svg.line(x.at(ridge), top_speed, x.at(x.most), top_speed, "black", 2);
}

void draw_points(Svg& svg, const LogAxis& x, const LogAxis& y, const std::vector<Measurement>& rows)
{
    for (const Measurement& m : rows) {
        if (!known(m.ours_us))
            continue;
        const Product& p = m.product;
        const double speed = std::max(m.tflops(), y.least);
        svg.circle(x.at(std::clamp(p.intensity(), x.least, x.most)), y.at(speed), 3.5, color_of(p),
                   fmt::format("{} {} {}: {:.2f} us, {:.1f} TFLOP/s, {}", p.shape(), p.layout,
                               test::name_of(p.type), m.ours_us, m.tflops(), m.kernel));
    }
    double place = plot_top + 10;
    for (const Color& each : colors) {
        svg.circle(plot_right + 25, place, 5, each.color, each.region);
        svg.text(plot_right + 38, place + 4, each.region);
        place += 22;
    }
}

}  // namespace

std::string roofline(const Run& run, const Limits& limits)
{
    Svg svg(width, height);
    const LogAxis x{0.1, 10000, plot_left, plot_right},
        y{0.01, limits.flops > 1e15 ? 10000.0 : 1000.0, plot_bottom, plot_top};
    const auto device = run.machine.find("device");
    const std::string known_limits =
        known(limits.flops)
            ? fmt::format("limits {:.4g} TFLOP/s, {:.3g} TB/s", limits.flops * 1e-12, limits.bytes * 1e-12)
            : "limits not known";
    svg.text(width / 2, 26,
             "libhgemm on " + (device == run.machine.end() ? "an unknown device" : device->second) + ", " +
                 counted(run.rows.size(), "product") + "; " + known_limits,
             "middle", 16);
    draw_axes(svg, x, y);
    if (known(limits.flops))
        draw_limits(svg, x, y, limits);
    draw_points(svg, x, y, run.rows);
    return svg.finish();
}

}  // namespace hg::bench
