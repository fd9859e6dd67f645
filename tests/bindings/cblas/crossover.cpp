// Times products of host memory on both sides, the CPU and staged to the GPU, beside what the library
// forecasts: one line of CSV each. The last lines are the rates that the times show, as route.hpp has them.
#include "fit.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace hg::cblas {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
    std::vector<int64_t> sizes = {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192};
    int repeats = 5;
    double seconds = 50;
};

constexpr double absent = 0;

// The median of `repeats` runs after one that allocates; absent where the side is.
template <typename Run>
double microseconds(int repeats, const Run& run)
{
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {
        const auto begin = Clock::now();
        const Status status = run();
        if (status == HGEMM_STATUS_NOT_SUPPORTED || status == HGEMM_STATUS_NO_DEVICE)
            return absent;
        if (status != ok)
            throw std::runtime_error(error_text());
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    times.erase(times.begin());
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    return times[static_cast<size_t>(repeats / 2)];
}

std::string to_text(double us) { return us == absent ? "" : fmt::format("{:.1f}", us); }

Times measure(int64_t m, int64_t n, int64_t k, hgemm_type_t type, int repeats)
{
    const std::vector<uint16_t> a(static_cast<size_t>(m * k), 0x3c00);
    const std::vector<uint16_t> b(static_cast<size_t>(k * n), 0x3c00);
    std::vector<uint16_t> d(static_cast<size_t>(m * n));
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.layout = HGEMM_ROW_MAJOR;
    g.type_ab = g.type_c = g.type_d = type;
    g.m = m;
    g.n = g.ldb = g.ldc = g.ldd = n;
    g.k = g.lda = k;
    g.a = a.data();
    g.b = b.data();
    g.c = g.d = d.data();

    const Forecast expected = forecast(g, available_cores());
    const Times times{g, microseconds(repeats, [&] { return run_on_host(g); }),
                      microseconds(repeats, [&] { return run_on_gpu(g); })};
    fmt::print("{},{},{},{},{},{},{:.1f},{:.1f}\n", type == HGEMM_F16 ? "f16" : "bf16", m, n, k,
               to_text(times.host_us), to_text(times.gpu_us), expected.host_us, expected.gpu_us);
    std::fflush(stdout);
    return times;
}

void print_rates(const std::vector<Times>& times)
{
    const int cores = available_cores();
    const Loss before = loss_of(times, cores, {});
    const Rates r = fit(times, cores);
    const Loss after = loss_of(times, cores, r);
    fmt::print("# {} products, {} cores; over the faster side, mean and most:\n"
               "# by the rates of route.hpp {:.3f} {:.3f}, by these {:.3f} {:.3f}\n"
               "#     double gpu_start_us = {:.3g};\n#     double staged_bytes_per_us = {:.3g};\n"
               "#     double host_start_us = {:.3g};\n#     double host_flops_per_us = {:.3g};\n",
               times.size(), cores, before.mean, before.most, after.mean, after.most, r.gpu_start_us,
               r.staged_bytes_per_us, r.host_start_us, r.host_flops_per_us);
}

void measure_all(const Settings& settings)
{
    const auto begin = Clock::now();
    std::vector<Times> both;
    bool has_host = true, has_gpu = true;
    fmt::print("type,m,n,k,host_us,gpu_us,host_forecast_us,gpu_forecast_us\n");
    for (const int64_t size : settings.sizes)
        for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
            for (const auto& [m, k] : {std::pair{size, size}, {int64_t{16}, size}, {size, int64_t{64}}}) {
                if (std::chrono::duration<double>(Clock::now() - begin).count() > settings.seconds)
                    continue;
                const Times times = measure(m, size, k, type, settings.repeats);
                has_host = has_host && times.host_us != absent;
                has_gpu = has_gpu && times.gpu_us != absent;
                both.push_back(times);
            }
    if (!has_host)
        fmt::print("# the host computed nothing: {}\n", hgemm_last_error());
    if (!has_gpu)
        fmt::print("# no GPU: nothing was staged\n");
    if (has_host && has_gpu)
        print_rates(both);
}

}  // namespace
}  // namespace hg::cblas

int main(int argc, char** argv)
{
    CLI::App app("Times products of host memory on the CPU and staged to the GPU; CSV on standard output.");
    hg::cblas::Settings settings;
    app.add_option("--sizes", settings.sizes,
                   "Sizes of the squares, and of products 16 rows high or 64 deep")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--repeats", settings.repeats, "Runs of which the median is taken")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--seconds", settings.seconds, "No product is begun later")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        hg::cblas::measure_all(settings);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
