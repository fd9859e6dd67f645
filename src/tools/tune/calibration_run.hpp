// What `hgemm-tune --calibrate` measures to fit a backend's calibration to: many products, a few plans
// each.
#pragma once

#include "src/plan/backend.hpp"
#include "src/tools/bench/product.hpp"
#include "src/tools/tune/fit.hpp"
#include "src/tune/choices.hpp"

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace hg::bench {

// Products of many sizes, layouts and batches, the same ones each time, in an order of which each beginning
// has all kinds. None has more operands than `max_bytes`.
std::vector<Product> calibration_products(size_t count, double max_bytes);

// The product at addresses where nothing lies, for plans and predictions.
Problem problem_of(const Product& product);

// A backend whose cost model is fitted while it is measured.
class CalibrationRun {
public:
    // Microseconds of each plan for the product; NaN for one that did not run.
    using Stopwatch = std::function<std::vector<double>(const Product&, const std::vector<KernelChoice>&)>;

    CalibrationRun(const Backend& backend, const Device& device, const Options& options);

    // Times what the library chooses, the best kernels by the fit so far, and some others.
    void add(const Product& product, const Stopwatch& stopwatch);

    const std::vector<Timing>& timings() const { return timings_; }
    size_t problems() const { return problems_; }
    Fit fitted() const { return fit(backend_, usual_, timings_); }
    Costs costs() const { return costs_of(backend_, usual_, timings_); }

private:
    // Appends what the settings lead to, if that is possible, without copies, and new.
    bool add_plan(const std::string& text, const Problem& problem, const Device& device,
                  std::vector<KernelChoice>& choices) const;
    std::vector<KernelChoice> choices(const Problem& problem);
    void add_variations(const Problem& problem, const Device& device, size_t of_best,
                        std::vector<KernelChoice>& choices);
    void refit();

    const Backend& backend_;
    const Device usual_;  // without a calibration
    const Options options_;
    Calibration calibration_;  // the fit so far
    std::vector<Timing> timings_;
    size_t problems_ = 0;
    std::minstd_rand random_{1};
};

}  // namespace hg::bench
