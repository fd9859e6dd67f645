// What a calibration is worth, told from measurements that are there: takes a part of the problems of a
// file of measured candidates ("m n k layout candidate us", as `hgemm-bench candidates` writes them) as
// what `hgemm-tune --calibrate` measures, and says what choices by the model cost on all other problems,
// before and after. With --as the model counts as if the GPU were of another compute capability, as it does
// on a GPU that nobody measured. With --tuning it tries the calibration of a tuning file.
#include "src/plan/dispatch.hpp"
#include "src/plan/options.hpp"
#include "src/tools/tune/calibration_run.hpp"
#include "src/tools/tune/fit.hpp"
#include "src/tuning/file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace hg;
using namespace hg::bench;

struct Settings {
    std::string backend = "sm80";
    int64_t gigabytes = 3352;
    int as = 90;
    size_t products = 90, plans = 12, repeats = 12;
    std::string tuning;  // a file, whose calibration is tried instead
};

Device device_of(const Settings& settings)
{
    Device device{};
    device.cc = 90;
    device.sm_count = 132;
    device.smem_per_block = 227 * 1024;
    device.memory_bandwidth = settings.gigabytes * 1'000'000'000;
    std::strcpy(device.name, "a GPU of a file");
    return device;
}

// The cost model does not tell apart whether the next kernel starts late or early: only what it leads to is
// chosen.
struct Measured {
    Timing timing;
    bool is_choosable;
};
using Problems = std::vector<std::vector<Measured>>;

class File {
public:
    explicit File(const Settings& settings) : device_(device_of(settings))
    {
        std::strcpy(options_.backend, settings.backend.substr(0, sizeof options_.backend - 1).c_str());
        options_.workspace = size_t{256} << 20;
        const Backend* backends[max_backends];
        int count = 0;
        if (find_backends(device_, options_, backends, count) != ok)
            throw std::runtime_error(hgemm_last_error());
        backend_ = backends[0];
        options_.counters = counter_words(device_, {&backend_, 1}, options_.workspace);
        device_.cc = settings.as;
    }

    const Backend& backend() const { return *backend_; }
    const Device& device() const { return device_; }

    // The problems with three plans or more of the backend that copy nothing.
    Problems read(std::istream& in) const
    {
        std::map<std::string, std::vector<Measured>> problems;
        for (std::string text; std::getline(in, text);)
            if (!text.empty() && text[0] != '#')
                add(text, problems);
        Problems found;
        for (auto& [key, timings] : problems)
            if (timings.size() >= 3)
                found.push_back(std::move(timings));
        return found;
    }

private:
    void add(const std::string& text, std::map<std::string, std::vector<Measured>>& problems) const
    {
        Product product{};
        product.type = HGEMM_BF16;
        std::string candidate;
        double us = 0;
        std::istringstream words(text);
        words >> product.m >> product.n >> product.k;
        if (words.peek() == 'x')
            words.ignore() >> product.batch;
        Options forced = options_;
        std::string_view unknown;
        Plan plan{};
        plan.backend = backend_;
        if (!(words >> product.layout >> candidate >> us) || us <= 0)
            throw std::runtime_error("not \"m n k layout candidate us\": " + text);
        if (!candidate.starts_with(std::string(backend_->name) + '_') ||
            !read_kernel(candidate, forced, unknown))
            return;
        const Problem problem = problem_of(product);
        if (!backend_->choose(problem, device_, forced, plan) || plan.repacks())
            return;
        std::vector<Measured>& measured = problems[text.substr(0, text.find(candidate))];
        const auto same = [&](const Measured& m) { return text_of(m.timing.plan) == text_of(plan); };
        if (std::ranges::none_of(measured, same))
            measured.push_back({{0, problem, plan, us}, is_choosable(problem, forced, plan)});
    }

    bool is_choosable(const Problem& problem, Options forced, const Plan& plan) const
    {
        forced.pdl = Pdl::Free;
        Plan chosen{};
        chosen.backend = backend_;
        return plan.pdl == Pdl::Off || (backend_->choose(problem, device_, forced, chosen) &&
                                        plan.pdl == (chosen.pdl == Pdl::Off ? Pdl::Early : chosen.pdl));
    }

    Device device_;
    Options options_{};
    const Backend* backend_;
};

// What a calibration would measure: at most so many plans of each problem.
std::vector<Timing> sample_of(std::span<const std::vector<Measured>> problems, size_t plans,
                              std::minstd_rand& random)
{
    std::vector<Timing> all;
    for (size_t number = 0; number < problems.size(); ++number) {
        std::vector<Measured> some = problems[number];
        std::erase_if(some, [](const Measured& m) { return !m.is_choosable; });
        std::ranges::shuffle(some, random);
        some.resize(std::min(some.size(), plans));
        for (const Measured& measured : some) {
            all.push_back(measured.timing);
            all.back().number = number;
        }
    }
    return all;
}

double cost(const File& file, const Fit& fit, std::span<const std::vector<Measured>> problems)
{
    std::vector<Timing> all;
    for (size_t number = 0; number < problems.size(); ++number)
        for (const Measured& measured : problems[number]) {
            all.push_back(measured.timing);
            all.back().number = number;
        }
    std::vector<double> us = predict_timings(file.backend(), file.device(), fit, all);
    for (size_t i = 0, number = 0; number < problems.size(); ++number)
        for (const Measured& measured : problems[number])
            us[i++] += measured.is_choosable ? 0 : std::numeric_limits<double>::infinity();
    return cost_of(all, us);
}

// The calibration of a tuning file, of whatever device and library.
Fit read_fit(const std::string& path, const Backend& backend)
{
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    TuningOrigin origin(Device{}, 1);
    std::istringstream lines(text);
    std::string line;
    for (std::string* const value : {static_cast<std::string*>(nullptr), &origin.device, &origin.library})
        if (std::getline(lines, line) && value)
            *value = line.substr(std::min(line.find(' ') + 1, line.size()));
    std::vector<std::string> remarks;
    const Backend* const one = &backend;
    const Calibration found = calibrate(parse_tuning(text, origin).calibration, {&one, 1}, remarks);
    if (found.backends.empty())
        throw std::runtime_error(path + " has no calibration of " + backend.name);
    Fit fit;
    fit.own = found.backends[0].factors;
    return fit;
}

Fit neutral_fit(const Backend& backend)
{
    Fit fit;
    fit.own.resize(static_cast<size_t>(backend.kernel_count));
    return fit;
}

void evaluate_file(const Settings& settings)
{
    const File file(settings);
    const Problems problems = file.read(std::cin);
    fmt::print("{} problems; choices cost {:.1f} % before, {:.1f} % after\n", problems.size(),
               100 * (cost(file, neutral_fit(file.backend()), problems) - 1),
               100 * (cost(file, read_fit(settings.tuning, file.backend()), problems) - 1));
}

void evaluate(const Settings& settings)
{
    const File file(settings);
    const Backend& backend = file.backend();
    Problems problems = file.read(std::cin);
    const size_t seen = std::min(settings.products, problems.size() / 2);
    const Fit neutral = neutral_fit(backend);
    std::minstd_rand random(1);
    double before = 0, after = 0;
    size_t timed = 0;
    for (size_t repeat = 0; repeat < settings.repeats; ++repeat) {
        std::ranges::shuffle(problems, random);
        const std::vector<Timing> known =
            sample_of(std::span(problems).first(seen), settings.plans, random);
        const auto others = std::span<const std::vector<Measured>>(problems).subspan(seen);
        const Fit found = fit(backend, file.device(), known);
        timed += known.size();
        before += std::log(cost(file, neutral, others));
        after += std::log(cost(file, found, others));
    }
    const auto repeats = static_cast<double>(settings.repeats);
    fmt::print(
        "{} problems; {} timings of {} of them; choices for the others cost {:.1f} % before, {:.1f} % "
        "after\n",
        problems.size(), timed / settings.repeats, seen, 100 * std::expm1(before / repeats),
        100 * std::expm1(after / repeats));
}

}  // namespace

int main(int argc, char** argv)
try {
    CLI::App app("What a calibration is worth, by measured candidates on standard input.");
    Settings settings;
    app.add_option("--backend", settings.backend, "Whose candidates")->capture_default_str();
    app.add_option("--memory", settings.gigabytes, "Bandwidth by clock and bus, GB/s")
        ->capture_default_str();
    app.add_option("--as", settings.as, "Compute capability that the model counts with")
        ->capture_default_str();
    app.add_option("--products", settings.products, "Problems that are measured")->capture_default_str();
    app.add_option("--plans", settings.plans, "Plans of each")->capture_default_str();
    app.add_option("--repeats", settings.repeats, "Random choices of these")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--tuning", settings.tuning, "Try the calibration of this file, on all problems")
        ->check(CLI::ExistingFile);
    CLI11_PARSE(app, argc, argv);
    settings.tuning.empty() ? evaluate(settings) : evaluate_file(settings);
    return 0;
} catch (const std::exception& error) {
    std::cerr << "hgemm-calibration: " << error.what() << '\n';
    return 2;
}
