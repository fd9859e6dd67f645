#include "src/tools/bench/report.hpp"

#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/output.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/support/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

namespace hg::bench {
namespace {

using Ratio = double Measurement::*;
constexpr const char* regions[] = {"tiny", "gemv", "decode", "mid", "thin-K", "deep-K", "large", "odd"};

bool is_plain(const Measurement& m) { return m.product.output.plain(); }

std::string cell(double value, int width, int digits)
{
    return known(value) ? fmt::format("{:>{}.{}f}", value, width, digits)
                        : fmt::format("{:>{}}", "-", width);
}

std::vector<double> all_of(const std::vector<Measurement>& rows, Ratio ratio)
{
    std::vector<double> values;
    for (const Measurement& m : rows)
        values.push_back(m.*ratio);
    return values;
}

template <typename Keep>
std::vector<Measurement> those(const std::vector<Measurement>& rows, const Keep& keep)
{
    std::vector<Measurement> kept;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept), keep);
    return kept;
}

std::string spread_cells(const Spread& s)
{
    return "  " + cell(s.geomean, 7, 3) + cell(s.p5, 7, 3) + cell(s.p50, 7, 3) + cell(s.p95, 7, 3) +
           cell(100 * s.below, 6, 0) + " %";
}

struct Part {
    std::string name;
    std::vector<Measurement> rows;
};

// Plain products by region and all of them, then others by output.
std::vector<Part> parts_of(const std::vector<Measurement>& rows)
{
    std::vector<Part> parts;
    const auto add = [&](const std::string& name, std::vector<Measurement> part) {
        if (!part.empty())
            parts.push_back({name, std::move(part)});
    };
    const auto plain = those(rows, is_plain), others = those(rows, std::not_fn(is_plain));
    for (const char* region : regions)
        add(region, those(plain, [&](const Measurement& m) {
                return std::string(region) == region_of(m.product);
            }));
    add("all", plain);
    std::vector<Output> outputs;
    for (const Measurement& m : others)
        if (std::find(outputs.begin(), outputs.end(), m.product.output) == outputs.end())
            outputs.push_back(m.product.output);
    for (const Output& output : outputs)
        add(output.text(), those(others, [&](const Measurement& m) { return m.product.output == output; }));
    return parts;
}

std::string ratio_table(const std::vector<Measurement>& rows, const std::string& best)
{
    const std::string columns =
        fmt::format("  {:>7}{:>7}{:>7}{:>7}{:>8}", "geomean", "p5", "p50", "p95", "< 0.98");
    std::string text = fmt::format("\n{:<25}  {:<36}  {}\n{:<20}{:>5}{}{}\n", "", "vs cublasGemmEx",
                                   "vs " + best, "region", "n", columns, columns);
    for (const Part& part : parts_of(rows))
        text += fmt::format("{:<20}{:>5}{}{}\n", part.name, part.rows.size(),
                            spread_cells(spread_of(all_of(part.rows, &Measurement::ratio_default))),
                            spread_cells(spread_of(all_of(part.rows, &Measurement::ratio_best))));
    return text;
}

// "1.084 / 1.070" and whether that is reached.
std::string goal_cell(const Spread& s, double least, double max_below)
{
    if (s.count == 0)
        return fmt::format("{:>16}", "-");
    const bool reached = s.geomean >= least && s.below < max_below + 1e-9;
    return fmt::format("{:>8.3f}/{:.2f} {}", s.geomean, least, reached ? "ok" : "--");
}

// The goals against the best are for the default baseline.
std::string goal_table(const std::vector<Measurement>& rows, bool default_baseline)
{
    std::string text = fmt::format("\n{:<20}{:>5}{:>16}{:>16}   (geomean / must)\n", "region", "n",
                                   "vs default", "vs best");
    bool any = false;
    for (const Goal& goal : goals()) {
        const auto part = those(rows, [&](const Measurement& m) { return goal.has(m.product); });
        if (part.empty())
            continue;
        any = true;
        const Spread vs_default = spread_of(all_of(part, &Measurement::ratio_default));
        const Spread vs_best =
            default_baseline ? spread_of(all_of(part, &Measurement::ratio_best)) : Spread{};
        text += fmt::format("{:<20}{:>5}{}{}", goal.name, part.size(),
                            goal_cell(vs_default, goal.vs_default, 1),
                            goal_cell(vs_best, goal.vs_best, goal.max_below));
        if (goal.max_below < 1 && vs_best.count > 0)
            text += fmt::format("   {:.0f} % below 0.98, must be under {:.0f} %", 100 * vs_best.below,
                                100 * goal.max_below);
        text += "\n";
    }
    return any ? text : "";
}

std::string worst(std::vector<Measurement> rows, Ratio ratio, const std::string& title)
{
    constexpr size_t shown = 10;
    std::erase_if(rows, [&](const Measurement& m) { return !known(m.*ratio); });
    if (rows.empty())
        return "";
    std::sort(rows.begin(), rows.end(),
              [&](const Measurement& x, const Measurement& y) { return x.*ratio < y.*ratio; });
    rows.resize(std::min(rows.size(), shown));
    std::string text = fmt::format("\n{}:\n", title);
    for (const Measurement& m : rows)
        text +=
            fmt::format("  {:.3f}  {:<20} {} {:<5} {:<7} {}\n", m.*ratio, m.product.shape(),
                        m.product.layout, test::name_of(m.product.type), region_of(m.product), m.kernel);
    return text;
}

// The ratio of the default baseline to batch-invariant mode.
std::vector<double> invariant_ratios(const std::vector<Measurement>& rows)
{
    std::vector<double> ratios;
    for (const Measurement& m : rows)
        if (known(m.ratio_default))
            ratios.push_back(m.ratio_default / m.invariant_cost);
    return ratios;
}

// What batch-invariant mode costs, and how fast it is beside the default baseline.
std::string invariant_table(const std::vector<Measurement>& rows)
{
    const auto timed = those(rows, [](const Measurement& m) { return known(m.invariant_cost); });
    if (timed.empty())
        return "";
    std::string text = fmt::format("\nBatch-invariant mode:     {:<21}  {}\n{:<20}{:>5}  {:>7}{:>7}{:>7}"
                                   "  {:>7}{:>7}{:>7}{:>7}{:>8}\n",
                                   "its time / ours", "cublasGemmEx's time / its", "region", "n", "geomean",
                                   "p95", "most", "geomean", "p5", "p50", "p95", "< 0.98");
    for (const Part& part : parts_of(timed)) {
        const auto costs = all_of(part.rows, &Measurement::invariant_cost);
        const Spread s = spread_of(costs);
        text +=
            fmt::format("{:<20}{:>5}  {:>7.3f}{:>7.3f}{:>7.3f}{}\n", part.name, part.rows.size(), s.geomean,
                        s.p95, quantile(costs, 1), spread_cells(spread_of(invariant_ratios(part.rows))));
    }
    return text;
}

// How many algorithms the baseline mma-sync has tried, and which it took.
std::string mma_sync_table(const std::vector<Measurement>& rows)
{
    std::vector<double> counts;
    std::map<std::string, size_t> taken;  // by algorithm id
    for (const Measurement& m : rows)
        if (!m.best_algorithm.empty()) {
            counts.push_back(m.algorithms);
            ++taken[m.best_algorithm.substr(0, m.best_algorithm.find('/'))];
        }
    std::string text =
        "\nBaseline mma-sync, algorithm ids 21, 23 and 24 of cuBLASLt (cutlass_80_*, cutlass_75_*):\n";
    if (!counts.empty())
        text += fmt::format("{:.0f} to {:.0f} configurations were tried for a product.",
                            quantile(counts, 0), quantile(counts, 1));
    for (const auto& [id, count] : taken)
        text += fmt::format(" Fastest {} time{}: {}.", count, count == 1 ? "" : "s", id);
    if (!counts.empty())
        text += "\n";
    if (counts.size() < rows.size())
        text += fmt::format("No mma.sync baseline for {} of {} products.\n", rows.size() - counts.size(),
                            rows.size());
    return text;
}

std::string noise(const std::vector<Measurement>& rows)
{
    auto spreads = all_of(rows, &Measurement::aa_spread);
    std::erase_if(spreads, [](double value) { return !known(value); });
    if (spreads.empty())
        return "";
    return fmt::format("\nA/A, interquartile range of a baseline against itself: median {:.4f}, largest "
                       "{:.4f} of {}.\n",
                       median(spreads), quantile(spreads, 1), counted(spreads.size(), "product"));
}

std::string floor_text(const Limits& limits)
{
    return known(limits.flops)
               ? fmt::format(" ({:.0f} TFLOP/s, {:.2f} TB/s)", limits.flops * 1e-12, limits.bytes * 1e-12)
               : ", which are not known";
}

}  // namespace

std::string heading(const Machine& machine)
{
    std::string text;
    for (const auto& [name, value] : machine)
        text += fmt::format("{:<9} {}\n", name, value);
    if (baseline_of(machine) == mma_sync_baseline)
        text += "Best: the fastest of cuBLASLt's own mma.sync kernels, algorithm ids 21, 23, 24, on this "
                "GPU,\nover "
                "their tiles, stages, splits and swizzles. That is what an Ampere user gets from NVIDIA.\n";
    text +=
        "m x n: of row-major D, which is A * B summed over k. Times in us. Ratio: a baseline's time / "
        "ours, "
        "median of\npairs. A/A: interquartile range of the baseline with itself. Floor: what this GPU's "
        "highest "
        "rates allow" +
        floor_text(limits_of(machine)) +
        ".\nError: the largest |D - float64 result| / bound, right if <= 1.\n\n";
    return text + fmt::format("{:<5}{:<3}{:>20} {:<28}{:>9}{:>9}{:>9}{:>10}{:>8}{:>7}{:>9}{:>7}{:>9}  "
                              "{:<8}{:<8}{:>6}{:>7}{:>6}{:>6}{:>5}\n",
                              "type", "", "m x n x k", "kernel", "ours", "default", "best", "/default",
                              "/best", "A/A", "TFLOP/s", "GB/s", "floor", "bound", "region", "host",
                              "cublas", "error", "MHz", "W");
}

std::string line(const Measurement& m)
{
    const Product& p = m.product;
    const std::string shape = p.shape();  // a long one takes room from the kernel's name
    std::string text = fmt::format("{:<5}{:<3}{:>20} {:<{}}", test::name_of(p.type), p.layout, shape,
                                   m.kernel, 48 - std::clamp<size_t>(shape.size(), 20, 48));
    text += cell(m.ours_us, 9, 2) + cell(m.default_us, 9, 2) + cell(m.best_us, 9, 2) +
            cell(m.ratio_default, 10, 3) + cell(m.ratio_best, 8, 3) + cell(m.aa_spread, 7, 3) +
            cell(m.tflops(), 9, 1) + cell(m.gbps(), 7, 0) + cell(m.floor_us, 9, 2);
    text += fmt::format("  {:<8}{:<8}", bound_of(p), region_of(p));
    text += cell(m.host_us, 6, 2) + cell(m.default_host_us, 7, 2) + cell(m.error, 6, 2);
    text += fmt::format("{:>6}{:>5.0f}", m.sm_mhz, known(m.watts) ? m.watts : 0);
    if (known(m.hot_us))
        text += fmt::format("  hot {:.2f} {} {}", m.hot_us, cell(m.hot_ratio_default, 5, 3),
                            cell(m.hot_ratio_best, 5, 3));
    if (known(m.invariant_us))
        text += fmt::format("  batch-invariant {:.2f} x{:.3f} {}", m.invariant_us, m.invariant_cost,
                            m.invariant_kernel);
    if (!m.best_algorithm.empty())
        text += fmt::format("  mma.sync {} of {}", m.best_algorithm, m.best_tried);
    if (!m.no_best.empty())
        text += "  no mma.sync baseline for this problem: " + m.no_best;
    if (m.error > 1 || m.invariant_error > 1)
        text += "  WRONG";
    if (m.default_error > 1 || m.best_error > 1)
        text += "  BASELINE WRONG";
    return text;
}

std::string summary(const Run& run)
{
    const std::string baseline = baseline_of(run.machine), best = best_title(baseline);
    const std::string searched = baseline == mma_sync_baseline ? mma_sync_table(run.rows) : "";
    const auto compared =
        those(run.rows, [](const Measurement& m) { return known(m.ratio_default) || known(m.ratio_best); });
    if (compared.empty())
        return "\nNo baseline was measured.\n" + searched + invariant_table(run.rows);
    const auto plain = those(compared, is_plain), others = those(compared, std::not_fn(is_plain));
    return ratio_table(compared, best) + goal_table(plain, baseline == cublas_baseline) + searched +
           worst(plain, &Measurement::ratio_default, "Worst against cublasGemmEx") +
           worst(plain, &Measurement::ratio_best, "Worst against the " + best) +
           worst(others, &Measurement::ratio_default, "Worst outputs against cublasGemmEx") +
           worst(others, &Measurement::ratio_best, "Worst outputs against the " + best) +
           invariant_table(run.rows) + noise(compared);
}

}  // namespace hg::bench
