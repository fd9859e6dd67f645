// Times products of host memory on both sides, the CPU and staged to the GPU, beside what the library
// forecasts: one line of CSV each. The last lines are the rates that the times show, for route.hpp.
#include "route.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace hg::cblas {
namespace {

struct Shape {
    int64_t m, n, k;
    double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n * k); }
    double bytes() const { return 2.0 * static_cast<double>(m * k + k * n + m * n); }
};

struct Times {
    Shape shape;
    double host_us, gpu_us;
};

constexpr double absent = 0;

// The median of `repeats` runs after one that allocates; absent where the side is.
template <typename Run>
double microseconds(int repeats, const Run& run)
{
    using Clock = std::chrono::steady_clock;
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

Times measure(const Shape& shape, hgemm_type_t type, int repeats)
{
    const std::vector<uint16_t> a(static_cast<size_t>(shape.m * shape.k), 0x3c00);
    const std::vector<uint16_t> b(static_cast<size_t>(shape.k * shape.n), 0x3c00);
    std::vector<uint16_t> d(static_cast<size_t>(shape.m * shape.n));
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.layout = HGEMM_ROW_MAJOR;
    g.type_ab = g.type_c = g.type_d = type;
    g.m = shape.m;
    g.n = g.ldb = g.ldc = g.ldd = shape.n;
    g.k = g.lda = shape.k;
    g.a = a.data();
    g.b = b.data();
    g.c = g.d = d.data();

    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const Forecast expected = forecast(g, cores);
    const Times times{shape, microseconds(repeats, [&] { return run_on_host(g); }),
                      microseconds(repeats, [&] { return run_on_gpu(g); })};
    fmt::print("{},{},{},{},{},{},{:.1f},{:.1f}\n", type == HGEMM_F16 ? "f16" : "bf16", shape.m, shape.n,
               shape.k, to_text(times.host_us), to_text(times.gpu_us), expected.host_us, expected.gpu_us);
    std::fflush(stdout);
    return times;
}

// The start is the time of the smallest product, a rate that of the largest.
void print_rates(const std::vector<Times>& all)
{
    const auto by_flops = [](const Times& x, const Times& y) { return x.shape.flops() < y.shape.flops(); };
    const auto [least, most] = std::minmax_element(all.begin(), all.end(), by_flops);
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    if (most->host_us == absent)
        fmt::print("# the host computed nothing: {}\n", hgemm_last_error());
    else
        fmt::print("# host_start_us {:.1f}, host_flops_per_us {:.3g} a core of {}\n", least->host_us,
                   most->shape.flops() / most->host_us / cores, cores);
    if (most->gpu_us == absent)
        fmt::print("# no GPU: nothing was staged\n");
    else
        fmt::print("# gpu_start_us {:.1f}, staged_bytes_per_us {:.3g} (a lower bound: largest product)\n",
                   least->gpu_us, most->shape.bytes() / std::max(1.0, most->gpu_us - least->gpu_us));
}

void measure_all(const std::vector<int64_t>& sizes, int repeats)
{
    fmt::print("type,m,n,k,host_us,gpu_us,host_forecast_us,gpu_forecast_us\n");
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16}) {
        std::vector<Times> times;
        for (const int64_t size : sizes)
            for (const Shape& shape :
                 {Shape{size, size, size}, Shape{16, size, size}, Shape{size, size, 64}})
                times.push_back(measure(shape, type, repeats));
        print_rates(times);
    }
}

}  // namespace
}  // namespace hg::cblas

int main(int argc, char** argv)
{
    CLI::App app("Times products of host memory on the CPU and staged to the GPU; CSV on standard output.");
    std::vector<int64_t> sizes = {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192};
    int repeats = 5;
    app.add_option("--sizes", sizes, "Sizes of the squares, and of products 16 rows high or 64 deep")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--repeats", repeats, "Runs of which the median is taken")->check(CLI::Range(1, 1000));
    CLI11_PARSE(app, argc, argv);
    try {
        hg::cblas::measure_all(sizes, repeats);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
