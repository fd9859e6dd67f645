#include "src/tools/tune/tuner.hpp"

#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/plan/dispatch.hpp"
#include "src/run/execute.hpp"
#include "src/run/handle.hpp"
#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/progress.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/support/environment.hpp"
#include "src/tools/tune/forced.hpp"
#include "src/tune/choices.hpp"
#include "src/tune/store.hpp"
#include "src/tuning/file.hpp"
#include "src/tuning/key.hpp"
#include "src/tuning/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hg::bench {
namespace {

struct Arm {
    std::string text;  // "" for the library's own choice
    Plan plan;
    std::unique_ptr<GpuTimer::Graph> graph;
};

// What became of a product. The library's own choice is the one that it makes without a tuning file.
struct Tuned {
    std::string key, built_in, fastest;  // "" if the library's own choice is the fastest
    double us, built_in_us;
    Interval ratio;  // of the fastest to the library's own choice
    size_t candidates;
    std::vector<std::string> wrong;    // candidates with wrong results, the library's own choice among them
    std::vector<std::string> refused;  // candidates that did not run, and why

    bool is_better() const { return !fastest.empty(); }
    double gain() const { return is_better() ? 1 / ratio.median : 1; }
    std::optional<std::string> line() const
    {
        if (!is_better())
            return std::nullopt;
        return entry_line(key, fastest, us, built_in_us, ratio.half_width());
    }
};

class Stopped {};  // by a signal, or out of time

class Tuner {
public:
    Tuner(const TuneOptions& options, const volatile std::sig_atomic_t& interrupted);

    bool has_time_for(const Product& product) const;
    TuningOrigin origin() const { return {handle_.device, handle_.all_sm_count}; }
    std::string default_path() const { return default_tuning_path(handle_.device, handle_.all_sm_count); }
    // The library's own choice is then the one that it makes with the calibration of that file.
    void calibrate_by(const std::string& path);
    // Throws Stopped.
    Tuned measure(const Product& product);

private:
    void stop_if_asked() const;
    std::vector<Arm> arms_for(const Product& product, const Problem& problem,
                              const std::vector<Operands>& sets, Tuned& tuned);

    const TuneOptions& options_;
    const volatile std::sig_atomic_t& interrupted_;
    BenchDevice device_;
    // The library's own choice is the one that it makes without the choices of a file.
    const test::Variable off_{"HGEMM_TUNING", "off"};
    Ours ours_;
    Handle& handle_;
    const Forced forced_;
    Calibration calibration_;
    std::minstd_rand random_;
};

Tuner::Tuner(const TuneOptions& options, const volatile std::sig_atomic_t& interrupted)
    : options_(options), interrupted_(interrupted), device_("tuning", options.device),
      handle_(*find_handle(ours_.handle())), forced_(handle_), random_(options.seed)
{
    if (forced_.free().is_forced() || *forced_.free().backend)
        throw std::runtime_error(
            "HGEMM_KERNEL and HGEMM_BACKEND must not be set: the library's own choice is "
            "what others are held against");
    ours_.set_stream(device_.timer().stream());
    if (options.batch_invariant)
        ours_.set_mode(HGEMM_MODE_BATCH_INVARIANT);
}

void Tuner::calibrate_by(const std::string& path)
{
    std::string text, doubt;
    bool is_missing = false;
    if (read_tuning_file(path.c_str(), text, is_missing, doubt))
        return;
    std::vector<std::string> remarks;
    calibration_ = calibrate(parse_tuning(text, origin()).calibration, all_backends(), remarks);
    handle_.device.calibration = calibration_.backends.empty() ? nullptr : &calibration_;
}

bool Tuner::has_time_for(const Product& product) const
{
    const double ideal = ideal_us(product);
    const double graph = ideal * GpuTimer::launches_for(ideal, 1, options_.device.min_launches);
    return device_.has_time_for(2 * graph * (options_.candidates + 2 * options_.rules.max_rounds));
}

void Tuner::stop_if_asked() const
{
    if (interrupted_ || !device_.has_time_for(0))
        throw Stopped();
}

// The library's own choice and the candidates that are right.
std::vector<Arm> Tuner::arms_for(const Product& product, const Problem& problem,
                                 const std::vector<Operands>& sets, Tuned& tuned)
{
    forced_.select("");
    Plan own{};
    if (decide(handle_, problem, own) != ok)
        throw std::runtime_error(hgemm_last_error());
    const std::vector<KernelChoice> choices =
        promising_choices(handle_, problem, static_cast<size_t>(options_.candidates), TriedPdl::Each);
    const Expectation expectation = device_.expect(product, sets[0]);
    const Multiply multiply = [&](const Operands& o) { ours_.multiply(product, o); };
    std::vector<Arm> arms;
    int launches = 0;
    const auto add = [&](const std::string& text, const Plan& plan) {
        stop_if_asked();
        forced_.select(text);
        const bool right = device_.check(expectation, sets[0], plan.split, multiply).right();
        if (!right)
            tuned.wrong.push_back(text_of(plan));
        if (!right && !text.empty())
            return;
        if (launches == 0)
            launches = device_.launches(product, sets, {multiply});
        arms.push_back(
            {text, plan, std::make_unique<GpuTimer::Graph>(device_.timer(), sets, launches, multiply)});
    };
    add("", own);
    for (const KernelChoice& choice : choices)
        if (choice.text != text_of(own))
            try {
                add(choice.text, choice.plan);
            } catch (const std::runtime_error& error) {
                tuned.refused.push_back(choice.text + ": " + error.what());
            }
    forced_.select("");
    return arms;
}

Tuned Tuner::measure(const Product& product)
{
    const std::vector<Operands> sets = device_.operands(product);
    const Problem problem = to_problem(args_of(product, sets[0]));
    Tuned tuned{};
    tuned.key = tuning_key(problem, handle_.options.mode);
    const std::vector<Arm> arms = arms_for(product, problem, sets, tuned);
    tuned.candidates = arms.size() - 1;
    tuned.built_in = text_of(arms[0].plan);
    const auto turn = [&](size_t i) {
        stop_if_asked();
        return std::optional(arms[i].graph->time_us());
    };
    const Fastest fastest = find_fastest(arms.size(), options_.rules, random_, turn).value();
    tuned.built_in_us = fastest.reference_us;
    tuned.us = fastest.us;
    tuned.ratio = fastest.ratio;
    tuned.fastest = arms[fastest.candidate].text;
    return tuned;
}

using Clock = std::chrono::steady_clock;

// By what the products took that are done.
std::string left_of(Clock::time_point begin, size_t done, size_t all)
{
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    const double left =
        passed * static_cast<double>(all - done) / static_cast<double>(std::max(done, size_t{1}));
    return done > 0 ? fmt::format(", about {:.0f} s left", left) : "";
}

void print_heading(const TuneOptions& options)
{
    fmt::print("{:>5} {:<2} {:>22} {:>11}  {:<66} {:>11} {:>6} {:>8}  {}\n", "", "", "product", "before",
               "kernel", "now", "gain", "spread", "kernel");
    if (options.batch_invariant)
        fmt::print("in batch-invariant mode\n");
}

void print(const Product& p, const Tuned& t)
{
    fmt::print("{:>5} {:<2} {:>22} {:>8.2f} us  {:<66} ", test::name_of(p.type), p.layout, p.shape(),
               t.built_in_us, t.built_in);
    if (t.is_better())
        fmt::print("{:>8.2f} us {:>6.3f} {:>6.2f} %  {}\n", t.us, t.gain(), 100 * t.ratio.half_width(),
                   t.fastest);
    else
        fmt::print("{:>11} {:>6.3f} {:>8}  none of {} is clearly faster\n", "", 1.0, "", t.candidates);
    for (const std::string& text : t.wrong)
        fmt::print("    {} is WRONG\n", text);
    for (const std::string& text : t.refused)
        fmt::print("    left out, {}\n", text);
    std::fflush(stdout);
}

void print_summary(const std::vector<double>& gains, size_t left)
{
    const auto better = std::ranges::count_if(gains, [](double gain) { return gain > 1; });
    if (left > 0)
        fmt::print("\n{}.\n", products_left(left));
    if (!gains.empty())
        fmt::print("\n{} of {} products have a faster kernel now. All are {:.3f} times as fast as before, "
                   "by the geometric mean.\n",
                   better, gains.size(), geomean(gains));
}

}  // namespace

int tune(const TuneOptions& options, const volatile std::sig_atomic_t& interrupted)
{
    Tuner tuner(options, interrupted);
    const std::string path = options.out.empty() ? tuner.default_path() : options.out;
    if (path.empty())
        throw std::runtime_error(
            "neither XDG_CACHE_HOME nor HOME is an absolute path: --out must name the file");
    tuner.calibrate_by(path);
    std::optional<Store> store;
    if (!options.dry_run) {
        store.emplace(path, tuner.origin());
        for (const std::string& remark : store->remarks())
            fmt::print(stderr, "{}\n", remark);
    }
    std::vector<double> gains;
    size_t failed = 0, wrong = 0;
    const auto begin = Clock::now();
    print_heading(options);
    const Progress progress(options.products.size());
    for (const Product& product : options.products) {
        progress.show(gains.size() + failed,
                      product.shape() + left_of(begin, gains.size() + failed, options.products.size()));
        if (interrupted || !tuner.has_time_for(product))
            break;
        Tuned tuned{};
        try {
            tuned = tuner.measure(product);
        } catch (const Stopped&) {
            break;
        } catch (const std::runtime_error& error) {
            progress.clear();
            fmt::print(stderr, "{}: {}\n", product.shape(), error.what());
            ++failed;
            continue;
        }
        if (store)
            store->write({{tuned.key, tuned.line()}});
        progress.clear();
        print(product, tuned);
        gains.push_back(tuned.gain());
        wrong += tuned.wrong.size() + tuned.refused.size();
    }
    progress.clear();
    print_summary(gains, options.products.size() - gains.size() - failed);
    if (store && !gains.empty())
        fmt::print("Written to {}\n", store->path());
    return interrupted ? 130 : wrong + failed > 0 ? 1 : 0;
}

}  // namespace hg::bench
