#include "report.hpp"

#include "gpu_timer.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace hg::bench {
namespace {

constexpr size_t worst_shown = 10;

double tflops(const Measurement& m) { return m.product.flops() / m.ours.us * 1e-6; }

void print_ratios(const std::string& region, const std::vector<double>& ratios)
{
    double logs = 0;
    for (const double ratio : ratios)
        logs += std::log(ratio);
    const auto slow =
        std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio < 0.98; });
    const auto count = static_cast<double>(ratios.size());
    fmt::print("{:<8} {:>6} {:>8.3f} {:>7.3f} {:>7.3f} {:>7.3f} {:>9.0f} %\n", region, ratios.size(),
               std::exp(logs / count), quantile(ratios, 0.05), quantile(ratios, 0.5),
               quantile(ratios, 0.95), 100 * static_cast<double>(slow) / count);
}

}  // namespace

Csv::Csv(const std::string& path, const Machine& machine) : machine_(machine)
{
    if (path.empty())
        return;
    file_.open(path);
    if (!file_)
        throw std::runtime_error("cannot write " + path);
    file_ << "device,driver,cuda,cublas,date,m,n,k,layout,dtype,kernel,ours_us,cublas_us,ratio,aa_spread,"
             "tflops,"
             "gbps,floor_us,host_us,cublas_host_us,error,cublas_error,pairs,sets,launches,sm_mhz,watts\n";
}

void Csv::write(const Measurement& m)
{
    if (!file_.is_open())
        return;
    const Product& p = m.product;
    const bool cublas = !machine_.cublas.empty();
    const auto only = [](bool known, double value) { return known ? fmt::format("{:.4f}", value) : ""; };
    fmt::print(file_, "{},{},{},{},{},{},{},{},{},{},{},", machine_.device, machine_.driver, machine_.cuda,
               machine_.cublas, machine_.date, p.m, p.n, p.k, p.layout, test::name_of(p.type), m.kernel);
    fmt::print(file_, "{:.3f},{},{},{:.4f},{:.2f},{:.1f},{},{:.3f},{},", m.ours.us,
               only(cublas, m.cublas.us), only(cublas, m.ratio), m.aa_spread, tflops(m),
               p.bytes() / m.ours.us * 1e-3,
               only(machine_.device.find("H200") != std::string::npos, floor_us(p)), m.ours.host_us,
               only(cublas, m.cublas.host_us));
    fmt::print(file_, "{:.4f},{},{},{},{},{},{:.0f}\n", m.ours.verdict.error,
               only(cublas, m.cublas.verdict.error), m.pairs, m.sets, m.launches, m.sm_mhz, m.watts);
    file_.flush();
}

void print_heading(const Machine& machine)
{
    fmt::print("{}\n{}, driver {}, CUDA {}, {}, {}\n", hgemm_build_info(), machine.device, machine.driver,
               machine.cuda, machine.cublas.empty() ? "no cuBLAS" : "cuBLAS " + machine.cublas,
               machine.date);
    fmt::print(
        "Ratio: cuBLAS's time / ours, median of pairs. A/A: interquartile range of the baseline with "
        "itself.\nError: the largest |D - float64 result| / error bound, right if <= 1.\n\n"
        "{:<5} {:<6} {:>18} {:<26} {:>9} {:>9} {:>7} {:>6} {:>8} {:>7} {:>7} {:>7} {:>6} {:>6}\n",
        "type", "layout", "m x n x k", "kernel", "ours us", "cublas us", "ratio", "A/A", "TFLOP/s",
        "host us", "cu host", "error", "MHz", "W");
}

void print_line(const Measurement& m, bool with_cublas)
{
    const auto only = [&](double value) { return with_cublas ? fmt::format("{:.3f}", value) : "-"; };
    const Product& p = m.product;
    fmt::print(
        "{:<5} {:<6} {:>18} {:<26} {:>9.2f} {:>9} {:>7} {:>6.3f} {:>8.1f} {:>7.2f} {:>7} {:>7.3f} {:>6} "
        "{:>6.0f}",
        test::name_of(p.type), p.layout, p.shape(), m.kernel, m.ours.us, only(m.cublas.us), only(m.ratio),
        m.aa_spread, tflops(m), m.ours.host_us, only(m.cublas.host_us), m.ours.verdict.error, m.sm_mhz,
        m.watts);
    fmt::print("{}{}\n", m.ours.verdict.right() ? "" : "  WRONG",
               with_cublas && !m.cublas.verdict.right() ? "  CUBLAS WRONG" : "");
    std::fflush(stdout);
}

void print_summary(const std::vector<Measurement>& measurements)
{
    std::map<std::string, std::vector<double>> regions;
    std::vector<double> all;
    for (const Measurement& m : measurements) {
        regions[region_of(m.product)].push_back(m.ratio);
        all.push_back(m.ratio);
    }
    fmt::print("\n{:<8} {:>6} {:>8} {:>7} {:>7} {:>7} {:>11}\n", "region", "shapes", "geomean", "p5", "p50",
               "p95", "below 0.98");
    for (const auto& [region, ratios] : regions)
        print_ratios(region, ratios);
    print_ratios("all", all);

    std::vector<Measurement> worst = measurements;
    std::sort(worst.begin(), worst.end(), [](const auto& x, const auto& y) { return x.ratio < y.ratio; });
    worst.resize(std::min(worst.size(), worst_shown));
    fmt::print("\nworst:");
    for (const Measurement& m : worst)
        fmt::print(" {} {:.3f}", m.product.shape(), m.ratio);
    fmt::print("\n");
}

}  // namespace hg::bench
