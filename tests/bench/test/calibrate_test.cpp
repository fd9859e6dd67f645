// hgemm-tune --calibrate on GPUs that are a cost model with other factors: the fit must find them.
#include "src/tools/tune/calibrate.hpp"

#include "../../host/devices.hpp"
#include "src/tools/tune/calibration_run.hpp"
#include "src/tools/tune/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hg::bench {
namespace {

const Backend& backend_of(const std::string& name)
{
    return **std::ranges::find_if(all_backends(), [&](const Backend* b) { return b->name == name; });
}

// A GPU that nobody measured.
class Card {
public:
    // Of each kernel the factors differ by so much of them.
    Card(const std::string& backend, const Device& device, const Factors& common, double kernels_differ)
        : backend(backend_of(backend)), usual(device)
    {
        std::normal_distribution<double> own(0, kernels_differ);
        BackendCalibration truth{this->backend.kernels, {}};
        for (int i = 0; i < this->backend.kernel_count; ++i)
            truth.factors.push_back(
                common * Factors{.cycles = std::exp(own(random_)), .fixed = std::exp(own(random_))});
        truth_.backends.push_back(std::move(truth));
        options.workspace = size_t{128} << 20;
        const Backend* const one = &this->backend;
        options.counters = counter_words(device, {&one, 1}, options.workspace);
    }

    double us(const Problem& problem, const Plan& plan) const
    {
        return backend.predict_plan(problem, with(&truth_), plan, usual.sm_count);
    }
    CalibrationRun::Stopwatch stopwatch()
    {
        return [this](const Product& product, const std::vector<KernelChoice>& choices) {
            std::normal_distribution<double> noise(0, 0.01);
            std::vector<double> times;
            for (const KernelChoice& choice : choices)
                times.push_back(us(problem_of(product), choice.plan) * std::exp(noise(random_)));
            return times;
        };
    }
    // By the cost model with a calibration, or as it is. Nothing is copied.
    double us_of_choice(const Problem& problem, const Calibration* calibration) const
    {
        const Backend* const one = &backend;
        Plan plan{};
        const Status status = make_plan(problem, with(calibration), options, {&one, 1}, plan);
        return status == ok && !plan.repacks() ? us(problem, plan) : std::nan("");
    }
    // How many times as long as with the true factors choices take with others.
    double cost(const std::vector<Product>& products, const Calibration* calibration) const
    {
        double sum = 0, count = 0;
        for (const Product& product : products) {
            const Problem problem = problem_of(product);
            const double ratio = us_of_choice(problem, calibration) / us_of_choice(problem, &truth_);
            sum += std::isnan(ratio) ? 0 : std::log(ratio);
            count += !std::isnan(ratio);
        }
        return std::exp(sum / count);
    }

    const Backend& backend;
    const Device usual;
    Options options{};

private:
    Device with(const Calibration* calibration) const
    {
        Device device = usual;
        device.calibration = calibration;
        return device;
    }

    std::minstd_rand random_{7};
    Calibration truth_;
};

struct Calibrated {
    CalibrationRun run;
    std::vector<Product> others;  // that were not measured
};

Calibrated measure(Card& card)
{
    constexpr size_t measured = 120;
    std::vector<Product> products = calibration_products(2 * measured, 1e9);
    Calibrated calibrated{{card.backend, card.usual, card.options}, {}};
    for (size_t i = 0; i < products.size(); ++i)
        if (i < measured)
            calibrated.run.add(products[i], card.stopwatch());
        else
            calibrated.others.push_back(products[i]);
    return calibrated;
}

// Tensor cores and the rest of an SM are told apart where both matter, so their product counts.
void expect_near(const Factors& found, const Factors& truth)
{
    EXPECT_NEAR(found.memory / truth.memory, 1, 0.08);
    EXPECT_NEAR(found.l2 / truth.l2, 1, 0.1);
    EXPECT_NEAR(found.fixed / truth.fixed, 1, 0.15);
    EXPECT_NEAR(found.multiply * found.cycles / (truth.multiply * truth.cycles), 1, 0.15);
}

void expect_found(const std::string& backend, const Device& device, const Factors& truth)
{
    constexpr double kernels_differ = 0.08;
    SCOPED_TRACE(backend + " " + std::to_string(device.sm_count));
    Card card(backend, device, truth, kernels_differ);
    const Calibrated calibrated = measure(card);
    const Fit fit = calibrated.run.fitted();
    expect_near(fit.common, truth);
    const Calibration calibration{{fit.calibration(card.backend)}};
    const double before = card.cost(calibrated.others, nullptr);
    EXPECT_GT(before, 1.01);
    EXPECT_LT(card.cost(calibrated.others, &calibration), 1.005);
    const Costs costs = calibrated.run.costs();
    EXPECT_TRUE(costs.is_better());
    EXPECT_NEAR(costs.own, before, 0.025);
    EXPECT_LT(costs.calibrated, 1.01);
}

constexpr Factors slow_memory{.multiply = 0.7, .cycles = 0.8, .memory = 2, .l2 = 1.5, .fixed = 0.8};
constexpr Factors slow_tensor_cores{.multiply = 4, .cycles = 0.9, .memory = 1.2, .l2 = 1, .fixed = 1.1};

TEST(Calibrate, finds_the_factors_of_a_card)
{
    NEEDS_CUDA_BUILD();
    expect_found("sm80", a100, slow_memory);
    expect_found("sm80", a10, slow_tensor_cores);
    expect_found("sm120", rtx5090, slow_memory);
    expect_found("sm120", rtx5090, slow_tensor_cores);
    expect_found("sm100", b200, slow_memory);
    expect_found("sm90", gpu(90, 78, 227), slow_tensor_cores);
    expect_found("sm90", gpu(90, 114, 227), slow_memory);
}

TEST(Calibrate, is_not_better_where_the_model_is_right)
{
    NEEDS_CUDA_BUILD();
    for (const auto& [backend, device] : {std::pair("sm80", a100), std::pair("sm120", rtx5090)}) {
        Card card(backend, device, {}, 0);
        const Costs costs = measure(card).run.costs();
        EXPECT_FALSE(costs.is_better()) << costs.own << ' ' << costs.calibrated;
    }
}

// A plan that does not run is left out, and a product whose own choice does not run.
TEST(Calibrate, goes_on_where_a_kernel_does_not_run)
{
    NEEDS_CUDA_BUILD();
    Card card("sm80", a100, {}, 0);
    CalibrationRun run(card.backend, card.usual, card.options);
    const std::vector<Product> products = calibration_products(40, 1e9);
    size_t plans = 0, turn = 0;
    for (const Product& product : products)
        run.add(product, [&](const Product& p, const std::vector<KernelChoice>& choices) {
            std::vector<double> us = card.stopwatch()(p, choices);
            us[turn++ % 2 == 0 ? 0 : 1] = std::nan("");
            plans += choices.size();
            return us;
        });
    EXPECT_EQ(run.problems(), products.size() / 2);
    EXPECT_LT(run.timings().size(), plans / 2 + products.size());
    EXPECT_TRUE(std::ranges::all_of(run.timings(), [](const Timing& t) { return std::isfinite(t.us); }));
}

TEST(Calibrate, measures_many_kinds_of_products)
{
    const std::vector<Product> products = calibration_products(320, 1e9);
    EXPECT_EQ(products.size(), 320u);
    EXPECT_EQ(products, calibration_products(320, 1e9));
    for (const auto& few : {products, std::vector(products.begin(), products.begin() + 40)}) {
        const auto has = [&](auto is) { return std::ranges::any_of(few, is); };
        EXPECT_TRUE(has([](const Product& p) { return p.m == 1; }));
        EXPECT_TRUE(has([](const Product& p) { return p.batch > 1; }));
        EXPECT_TRUE(has([](const Product& p) { return p.m > 1000 && p.batch == 1; }));
        EXPECT_TRUE(has([](const Product& p) { return p.k > 10000; }));
        EXPECT_TRUE(has([](const Product& p) { return p.layout != "tn"; }));
    }
    for (const Product& product : calibration_products(320, 1e7))
        EXPECT_LE(product.bytes(), 1e7);
}

TEST(Calibrate, writes_what_handles_read)
{
    NEEDS_CUDA_BUILD();
    Card card("sm80", a100, slow_memory, 0.1);
    const Fit fit = measure(card).run.fitted();
    const TuningOrigin origin(a100, a100.sm_count);
    const std::string key = "64x4096x7168,bf16,tn";
    const std::string tuned = entry_line(key, "sm80_64x64x64_s4", 1, 2, 0.01);
    const std::string text = merge(origin.header() + tuned, origin, outcomes_of(card.backend, &fit));
    const TuningText read = parse_tuning(text, origin);
    EXPECT_TRUE(read.bad_lines.empty());
    ASSERT_EQ(read.entries.size(), 1u);
    std::vector<std::string> remarks;
    const Calibration found = hg::calibrate(read.calibration, all_backends(), remarks);
    EXPECT_EQ(remarks, std::vector<std::string>{"backend sm80 is calibrated"});
    ASSERT_EQ(found.backends.size(), 1u);
    for (int kernel = 0; kernel < card.backend.kernel_count; ++kernel)
        for (const auto& [name, value] : named_factors)
            EXPECT_NEAR(found.backends[0].factors[static_cast<size_t>(kernel)].*value,
                        fit.of(kernel).*value, 2e-3)
                << card.backend.kernels[kernel].name << ' ' << name;
    // What is tuned later leaves it, and it goes when it is not better.
    const std::string more = merge(text, origin, {{key, std::nullopt}});
    EXPECT_EQ(parse_tuning(more, origin).calibration.size(), read.calibration.size());
    const TuningText without =
        parse_tuning(merge(text, origin, outcomes_of(card.backend, nullptr)), origin);
    EXPECT_TRUE(without.calibration.empty());
    EXPECT_EQ(without.entries.size(), 1u);
}

}  // namespace
}  // namespace hg::bench
