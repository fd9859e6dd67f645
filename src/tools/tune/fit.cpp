#include "src/tools/tune/fit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace hg::bench {
namespace {

// Numbers that are fitted, all of them logarithms of factors: the common ones, then of each kernel these.
constexpr size_t common_count = std::size(named_factors);
constexpr double Factors::*of_kernel[] = {&Factors::cycles, &Factors::fixed};
constexpr size_t own_count = std::size(of_kernel);

// How far each may be from 0, and how far times may be from the model's, as standard deviations.
constexpr double common_spread = 0.7, own_spread = 0.1, noise = 0.07;
constexpr double weight_of_mean = 0.02;  // of the part that all plans of a problem have in common
constexpr double outlier = 0.15;         // a logarithm; beyond it a time counts by its first power
constexpr double near = 0.15;            // a plan that takes so much longer than the fastest counts by half
constexpr int steps = 10;
constexpr double max_move = 0.7;  // of a logarithm, in a step

using Vector = std::vector<double>;

double clamp_log(double value) { return std::clamp(value, std::log(min_factor), std::log(max_factor)); }

Fit fit_of(const Backend& backend, const Vector& x)
{
    Fit fit;
    for (size_t i = 0; i < common_count; ++i)
        fit.common.*named_factors[i].value = std::exp(x[i]);
    fit.own.resize(static_cast<size_t>(backend.kernel_count));
    for (size_t kernel = 0; kernel < fit.own.size(); ++kernel)
        for (size_t i = 0; i < own_count; ++i)
            fit.own[kernel].*of_kernel[i] = std::exp(x[common_count + own_count * kernel + i]);
    return fit;
}

template <typename Visit>
void for_each_problem(std::span<const Timing> timings, Visit visit)
{
    while (!timings.empty()) {
        size_t count = 1;
        while (count < timings.size() && timings[count].number == timings[0].number)
            ++count;
        visit(timings.first(count));
        timings = timings.subspan(count);
    }
}

double fastest_of(std::span<const Timing> timings)
{
    return std::ranges::min_element(timings, {}, &Timing::us)->us;
}

// A model with factors that change.
class Model {
public:
    Model(const Backend& backend, const Device& device) : backend_(backend), device_(device)
    {
        calibration_.backends.push_back(
            {backend.kernels, std::vector<Factors>(static_cast<size_t>(backend.kernel_count))});
        device_.calibration = &calibration_;
    }

    double log_us(const Timing& timing, const Factors& factors)
    {
        calibration_.backends[0].factors[static_cast<size_t>(timing.plan.kernel)] = factors;
        return std::log(backend_.predict_plan(timing.problem, device_, timing.plan, device_.sm_count));
    }

private:
    const Backend& backend_;
    Device device_;
    Calibration calibration_;
};

// By how much the logarithm of a predicted time is too large, and its derivatives by the numbers that it
// depends on: the common ones, then those of its kernel.
struct Row {
    size_t kernel;
    double us, error, weight;
    double slope[common_count + own_count];

    size_t number(size_t i) const { return i < common_count ? i : i + own_count * kernel; }
};

Row row_of(Model& model, const Timing& timing, const Fit& fit)
{
    constexpr double step = 0.02;
    Row row{};
    row.kernel = static_cast<size_t>(timing.plan.kernel);
    row.us = timing.us;
    const Factors factors = fit.of(timing.plan.kernel);
    const double log_us = model.log_us(timing, factors);
    row.error = log_us - std::log(timing.us);
    for (size_t i = 0; i < common_count; ++i) {
        const auto factor = named_factors[i].value;
        Factors more = factors;
        more.*factor *= std::exp(step);
        row.slope[i] = (model.log_us(timing, more) - log_us) / step;
        for (size_t j = 0; j < own_count; ++j)
            if (of_kernel[j] == factor)
                row.slope[common_count + j] = row.slope[i];
    }
    return row;
}

// Sums of squares: matrix * step = -vector at their minimum.
struct Normal {
    explicit Normal(size_t size) : size(size), matrix(size * size), vector(size) {}

    void add(const Vector& slope, double error, double weight)
    {
        std::vector<size_t> used;
        for (size_t i = 0; i < size; ++i)
            if (slope[i] != 0)
                used.push_back(i);
        for (const size_t i : used) {
            vector[i] += weight * slope[i] * error;
            for (const size_t j : used)
                matrix[i * size + j] += weight * slope[i] * slope[j];
        }
    }

    size_t size;
    Vector matrix, vector;
};

// By Cholesky's decomposition; the matrix is positive definite.
Vector solve(Normal n)
{
    const auto at = [&](size_t i, size_t j) -> double& { return n.matrix[i * n.size + j]; };
    for (size_t i = 0; i < n.size; ++i) {
        for (size_t j = 0; j <= i; ++j) {
            double sum = at(i, j);
            for (size_t k = 0; k < j; ++k)
                sum -= at(i, k) * at(j, k);
            at(i, j) = i == j ? std::sqrt(sum) : sum / at(j, j);
        }
        for (size_t k = 0; k < i; ++k)
            n.vector[i] -= at(i, k) * n.vector[k];
        n.vector[i] /= at(i, i);
    }
    for (size_t i = n.size; i-- > 0;) {
        for (size_t k = i + 1; k < n.size; ++k)
            n.vector[i] -= at(k, i) * n.vector[k];
        n.vector[i] /= at(i, i);
    }
    return n.vector;
}

// The rows of one problem: what they have in common counts less than what is beside it.
void add(std::span<Row> rows, Normal& normal)
{
    Vector mean(normal.size);
    double mean_error = 0, weights = 0;
    const double fastest = std::ranges::min_element(rows, {}, &Row::us)->us;
    for (Row& row : rows) {
        const double slower = (row.us / fastest - 1) / near;
        row.weight = 1 / (1 + slower * slower);
        weights += row.weight;
    }
    for (const Row& row : rows) {
        mean_error += row.weight * row.error / weights;
        for (size_t i = 0; i < std::size(row.slope); ++i)
            mean[row.number(i)] += row.weight * row.slope[i] / weights;
    }
    normal.add(mean, mean_error, weight_of_mean * weights);
    for (const Row& row : rows) {
        Vector slope = mean;
        std::ranges::for_each(slope, [](double& value) { value = -value; });
        for (size_t i = 0; i < std::size(row.slope); ++i)
            slope[row.number(i)] += row.slope[i];
        const double error = row.error - mean_error;
        normal.add(slope, error, row.weight * std::min(1.0, outlier / std::abs(error)));
    }
}

}  // namespace

BackendCalibration Fit::calibration(const Backend& backend) const
{
    BackendCalibration found{backend.kernels, {}};
    for (int kernel = 0; kernel < backend.kernel_count; ++kernel)
        found.factors.push_back(of(kernel));
    return found;
}

Fit fit(const Backend& backend, const Device& device, std::span<const Timing> timings)
{
    Model model(backend, device);
    Vector x(common_count + own_count * static_cast<size_t>(backend.kernel_count));
    for (int step = 0; step < steps; ++step) {
        Normal normal(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            const double spread = i < common_count ? common_spread : own_spread;
            const double prior = noise * noise / (spread * spread);
            normal.matrix[i * x.size() + i] += prior;
            normal.vector[i] += prior * x[i];
        }
        const Fit now = fit_of(backend, x);
        std::vector<Row> rows;
        for_each_problem(timings, [&](std::span<const Timing> of_problem) {
            rows.clear();
            for (const Timing& timing : of_problem)
                rows.push_back(row_of(model, timing, now));
            add(rows, normal);
        });
        const Vector move = solve(std::move(normal));
        for (size_t i = 0; i < x.size(); ++i)
            x[i] = clamp_log(x[i] - std::clamp(move[i], -max_move, max_move));
    }
    Fit found = fit_of(backend, x);
    found.is_known.resize(found.own.size());
    for (const Timing& timing : timings)
        found.is_known[static_cast<size_t>(timing.plan.kernel)] = true;
    return found;
}

std::vector<double> predict_timings(const Backend& backend, const Device& device, const Fit& fit,
                                    std::span<const Timing> timings)
{
    Model model(backend, device);
    std::vector<double> us;
    for (const Timing& timing : timings)
        us.push_back(std::exp(model.log_us(timing, fit.of(timing.plan.kernel))));
    return us;
}

double cost_of(std::span<const Timing> timings, std::span<const double> predicted)
{
    double sum = 0, count = 0;
    for_each_problem(timings, [&](std::span<const Timing> of_problem) {
        const auto best = std::ranges::min_element(predicted.first(of_problem.size())) - predicted.begin();
        sum += std::log(of_problem[static_cast<size_t>(best)].us / fastest_of(of_problem));
        predicted = predicted.subspan(of_problem.size());
        ++count;
    });
    return std::exp(sum / std::max(count, 1.0));
}

Costs costs_of(const Backend& backend, const Device& device, std::span<const Timing> timings)
{
    constexpr size_t parts = 4;
    std::vector<double> own, calibrated(timings.size());
    for (const Timing& timing : timings)
        own.push_back(timing.is_own ? 0.0 : 1.0);
    for (size_t part = 0; part < parts; ++part) {
        std::vector<Timing> seen;
        std::ranges::copy_if(timings, std::back_inserter(seen),
                             [&](const Timing& timing) { return timing.number % parts != part; });
        const std::vector<double> us =
            predict_timings(backend, device, fit(backend, device, seen), timings);
        for (size_t i = 0; i < timings.size(); ++i)
            if (timings[i].number % parts == part)
                calibrated[i] = us[i];
    }
    Costs costs{cost_of(timings, own), cost_of(timings, calibrated), 0};
    for_each_problem(timings, [&](auto) { ++costs.problems; });
    return costs;
}

}  // namespace hg::bench
