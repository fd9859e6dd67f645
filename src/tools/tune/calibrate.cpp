#include "src/tools/tune/calibrate.hpp"

#include "src/plan/calibration.hpp"
#include "src/run/handle.hpp"
#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/progress.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/support/environment.hpp"
#include "src/tools/tune/calibration_run.hpp"
#include "src/tools/tune/forced.hpp"
#include "src/tune/store.hpp"
#include "src/tuning/tuning.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hg::bench {
namespace {

class CalibrationStopped {};  // by a signal, or out of time

class Calibrator {
public:
    Calibrator(const CalibrateOptions& options, const volatile std::sig_atomic_t& interrupted);

    TuningOrigin origin() const { return {handle_.device, handle_.all_sm_count}; }
    std::string default_path() const { return default_tuning_path(handle_.device, handle_.all_sm_count); }
    std::vector<const Backend*> backends() const;
    size_t product_count() const { return products_.size(); }
    // Of at most so many seconds.
    CalibrationRun measure(const Backend& backend, double seconds, const Progress& progress, size_t done);

private:
    using Clock = std::chrono::steady_clock;

    static std::vector<Product> products(const std::vector<Product>& wanted, int64_t free_bytes);
    void stop_if_asked() const;
    std::vector<double> time(const Product& product, const std::vector<KernelChoice>& choices);

    const CalibrateOptions& options_;
    const volatile std::sig_atomic_t& interrupted_;
    BenchDevice device_;
    const test::Variable off_{"HGEMM_TUNING", "off"};
    Ours ours_;
    Handle& handle_;
    const Forced forced_;
    std::minstd_rand random_{1};
    const std::vector<Product> products_;
    Clock::time_point end_;
};

Calibrator::Calibrator(const CalibrateOptions& options, const volatile std::sig_atomic_t& interrupted)
    : options_(options), interrupted_(interrupted), device_("calibration", options.device),
      ours_(options.backend), handle_(*find_handle(ours_.handle())), forced_(handle_),
      products_(products(options.products, static_cast<int64_t>(device_.cuda().free_bytes())))
{
    if (forced_.free().is_forced())
        throw std::runtime_error("HGEMM_KERNEL must not be set: all kernels are measured");
    ours_.set_stream(device_.timer().stream());
}

std::vector<Product> Calibrator::products(const std::vector<Product>& wanted, int64_t free_bytes)
{
    constexpr size_t most = 320;
    return wanted.empty() ? calibration_products(most, static_cast<double>(free_bytes) / 8) : wanted;
}

// Where a backend is compared with the next one, that counts too.
std::vector<const Backend*> Calibrator::backends() const
{
    std::vector<const Backend*> found;
    for (const Backend* backend : handle_.served_by()) {
        if (backend->predict_plan)
            found.push_back(backend);
        if (!backend->is_compared || !options_.backend.empty())
            break;
    }
    return found;
}

void Calibrator::stop_if_asked() const
{
    if (interrupted_ || Clock::now() > end_)
        throw CalibrationStopped();
}

// The plans take turns in random order; the first turn of each is not counted.
std::vector<double> Calibrator::time(const Product& product, const std::vector<KernelChoice>& choices)
{
    const std::vector<Operands> sets = device_.operands(product);
    const Multiply multiply = [&](const Operands& o) { ours_.multiply(product, o); };
    std::vector<std::unique_ptr<GpuTimer::Graph>> graphs(choices.size());
    int launches = 0;
    for (size_t i = 0; i < choices.size(); ++i)
        try {
            stop_if_asked();
            forced_.select(choices[i].text);
            multiply(sets[0]);
            device_.timer().wait();
            if (launches == 0)
                launches = device_.launches(product, sets, {multiply});
            graphs[i] = std::make_unique<GpuTimer::Graph>(device_.timer(), sets, launches, multiply);
        } catch (const std::runtime_error& error) {
            fmt::print(stderr, "\n{} of {} does not run: {}\n", choices[i].text, product.shape(),
                       error.what());
        }
    std::vector<std::vector<double>> us(choices.size());
    std::vector<size_t> turns(choices.size());
    std::iota(turns.begin(), turns.end(), size_t{0});
    for (int round = 0; round <= options_.rounds; ++round) {
        std::ranges::shuffle(turns, random_);
        for (const size_t i : turns) {
            stop_if_asked();
            const double now = graphs[i] ? graphs[i]->time_us() : std::nan("");
            if (round > 0)
                us[i].push_back(now);
        }
    }
    std::vector<double> medians;
    for (std::vector<double>& of_plan : us)
        medians.push_back(median(std::move(of_plan)));
    return medians;
}

CalibrationRun Calibrator::measure(const Backend& backend, double seconds, const Progress& progress,
                                   size_t done)
{
    end_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    CalibrationRun run(backend, handle_.device, handle_.planning_options());
    try {
        for (const Product& product : products_) {
            progress.show(done++, fmt::format("{} {}", backend.name, product.shape()));
            run.add(product, [this](const Product& p, const std::vector<KernelChoice>& choices) {
                return time(p, choices);
            });
        }
    } catch (const CalibrationStopped&) {
    }
    return run;
}

// "0.87 to 1.12", of the kernels that were timed.
std::string range_of(const Fit& fit, double Factors::*value)
{
    double least = max_factor, most = min_factor;
    for (size_t kernel = 0; kernel < fit.own.size(); ++kernel)
        if (fit.is_known[kernel]) {
            least = std::min(least, fit.own[kernel].*value);
            most = std::max(most, fit.own[kernel].*value);
        }
    return fmt::format("{:.2f} to {:.2f}", least, most);
}

void print(const Backend& backend, const CalibrationRun& run, const Fit& fit, const Costs& costs)
{
    const auto kernels = std::ranges::count(fit.is_known, true);
    fmt::print("{}: {} timings of {} products, {} of {} kernels\n", backend.name, run.timings().size(),
               costs.problems, kernels, backend.kernel_count);
    fmt::print("    as many times as long as the library expects:");
    for (const auto& [name, value] : named_factors)
        fmt::print(" {} {:.2f}", name, fit.common.*value);
    fmt::print("\n    kernels beside that: cycles {}, fixed {}\n", range_of(fit, &Factors::cycles),
               range_of(fit, &Factors::fixed));
    fmt::print(
        "    longer than the fastest plan that was timed: the library's choice now {:.1f} %, with the "
        "calibration {:.1f} %\n",
        100 * (costs.own - 1), 100 * (costs.calibrated - 1));
}

}  // namespace

Outcomes outcomes_of(const Backend& backend, const Fit* fit)
{
    Outcomes outcomes{{calibration_key(backend.name), std::nullopt}};
    const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    int count = 0;
    for (int kernel = 0; kernel < backend.kernel_count; ++kernel) {
        const auto k = static_cast<size_t>(kernel);
        const char* const name = backend.kernels[k].name;
        auto& line = outcomes[calibration_key(name)];
        if (fit && fit->is_known[k]) {
            line = calibration_line(name, fit->own[k], -1, date);
            ++count;
        }
    }
    if (fit)
        outcomes[calibration_key(backend.name)] = calibration_line(backend.name, fit->common, count, date);
    return outcomes;
}

int calibrate(const CalibrateOptions& options, const volatile std::sig_atomic_t& interrupted)
{
    constexpr size_t min_problems = 24;
    constexpr double seconds_of_the_rest = 8;  // to start, to fit, to write
    Calibrator calibrator(options, interrupted);
    const std::string path = options.out.empty() ? calibrator.default_path() : options.out;
    if (path.empty())
        throw std::runtime_error(
            "neither XDG_CACHE_HOME nor HOME is an absolute path: --out must name the file");
    std::optional<Store> store;
    if (!options.dry_run)
        store.emplace(path, calibrator.origin());
    const std::vector<const Backend*> backends = calibrator.backends();
    const double seconds = std::max(1.0, options.device.budget_s - seconds_of_the_rest) /
                           static_cast<double>(std::max<size_t>(backends.size(), 1));
    const Progress progress(calibrator.product_count() * backends.size());
    size_t failed = 0, written = 0;
    for (size_t i = 0; i < backends.size(); ++i) {
        const Backend& backend = *backends[i];
        const CalibrationRun run =
            calibrator.measure(backend, seconds, progress, i * calibrator.product_count());
        progress.clear();
        if (interrupted)
            break;
        if (run.problems() < min_problems) {
            fmt::print("{}: {} products were timed, {} are needed: it is not calibrated.\n", backend.name,
                       run.problems(), min_problems);
            ++failed;
            continue;
        }
        const Fit fit = run.fitted();
        const Costs costs = run.costs();
        print(backend, run, fit, costs);
        const bool is_written = costs.is_better() || options.always;
        fmt::print("    {}\n", is_written ? "calibrated" : "not better than what the library has built in");
        if (store)
            store->write(outcomes_of(backend, is_written ? &fit : nullptr));
        written += is_written;
    }
    if (store && written > 0)
        fmt::print("Written to {}\n", store->path());
    return interrupted ? 130 : failed > 0 ? 1 : 0;
}

}  // namespace hg::bench
