#include "src/tools/tune/calibration_run.hpp"

#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/plan/dispatch.hpp"
#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

namespace hg::bench {
namespace {

constexpr size_t best_plans = 6, other_plans = 3, variations = 4;  // of each product
constexpr double slowest = 4;          // of the other plans, times the best prediction
constexpr size_t problems_a_fit = 16;  // after so many new ones the fit is renewed
constexpr double max_ideal_us = 120;   // of a product, on an H200

template <typename Value, size_t Count>
Value pick(std::minstd_rand& random, const Value (&values)[Count])
{
    return values[random() / 7 % Count];
}

int64_t multiple_of_8(double size) { return std::max<int64_t>(8, std::llround(size / 8) * 8); }

// From `least` to `most`, as many of one power of two as of another.
double draw_size(std::minstd_rand& random, double least, double most)
{
    return std::exp(std::uniform_real_distribution(std::log(least), std::log(most))(random));
}

Product draw_product(std::minstd_rand& random)
{
    constexpr int64_t rows[] = {1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096};
    constexpr int64_t columns[] = {512, 1024, 1536, 2048, 3072, 4096, 7168, 8192, 14336};
    constexpr const char* layouts[] = {"tn", "tn", "tn", "tn", "nn", "nt", "tt"};
    constexpr int64_t batches[] = {4, 16, 64, 256};
    Product p{};
    p.type = HGEMM_F16;
    p.layout = pick(random, layouts);
    const auto kind = random() / 7 % 8;
    if (kind == 0) {  // a batch of small ones
        p.batch = pick(random, batches);
        p.m = multiple_of_8(draw_size(random, 16, 1024));
        p.n = multiple_of_8(draw_size(random, 16, 1024));
        p.k = multiple_of_8(draw_size(random, 32, 1024));
    } else if (kind < 4) {  // any sizes
        p.m = multiple_of_8(draw_size(random, 8, 8192));
        p.n = multiple_of_8(draw_size(random, 64, 16384));
        p.k = multiple_of_8(draw_size(random, 64, 16384));
    } else {  // those of a language model's layer
        p.m = pick(random, rows);
        p.n = pick(random, columns);
        p.k = pick(random, columns);
    }
    if (!p.a_along_k())
        p.m = multiple_of_8(static_cast<double>(p.m));
    return p;
}

}  // namespace

std::vector<Product> calibration_products(size_t count, double max_bytes)
{
    std::minstd_rand random(1);
    std::vector<Product> products;
    for (size_t tries = 0; products.size() < count && tries < 100 * count; ++tries) {
        const Product product = draw_product(random);
        if (product.bytes() <= max_bytes && ideal_us(product) <= max_ideal_us &&
            std::ranges::find(products, product) == products.end())
            products.push_back(product);
    }
    return products;
}

Problem problem_of(const Product& product)
{
    Operands operands{};
    operands.a = reinterpret_cast<const uint16_t*>(0x1000);
    operands.b = reinterpret_cast<const uint16_t*>(0x2000);
    operands.d = reinterpret_cast<void*>(0x4000);
    return to_problem(args_of(product, operands));
}

CalibrationRun::CalibrationRun(const Backend& backend, const Device& device, const Options& options)
    : backend_(backend), usual_([&] {
          Device usual = device;
          usual.calibration = nullptr;
          return usual;
      }()),
      options_(options)
{
    calibration_.backends.push_back(
        {backend.kernels, std::vector<Factors>(static_cast<size_t>(backend.kernel_count))});
}

bool CalibrationRun::add_plan(const std::string& text, const Problem& problem, const Device& device,
                              std::vector<KernelChoice>& choices) const
{
    const Backend* const backend = &backend_;
    Plan plan{};
    if (make_tuned_plan(text, problem, device, options_, {&backend, 1}, plan) || plan.repacks())
        return false;
    std::string full = text_of(plan);
    if (std::ranges::find(choices, full, &KernelChoice::text) != choices.end())
        return false;
    choices.push_back({std::move(full), plan});
    return true;
}

// Plans of the first choices with other settings.
void CalibrationRun::add_variations(const Problem& problem, const Device& device, size_t of_best,
                                    std::vector<KernelChoice>& choices)
{
    constexpr int slices[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
    for (size_t tries = 0, added = 0; tries < 8 * variations && added < variations; ++tries) {
        const Plan& plan = choices[random_() / 7 % std::min(of_best, choices.size())].plan;
        const bool streams = plan.sm90.stream_k, other = random_() / 7 % 2 != 0;
        const std::string kernel = backend_.kernels[plan.kernel].name;
        const int split = random_() / 7 % 3 == 0 ? plan.split : pick(random_, slices);
        added += add_plan(fmt::format("{}/split={}/swap_ab={:d}/stream_k={:d}", kernel, streams ? 1 : split,
                                      plan.swap_ab != other, streams),
                          problem, device, choices);
    }
}

// The library's own choice first.
std::vector<KernelChoice> CalibrationRun::choices(const Problem& problem)
{
    const Backend* const backend = &backend_;
    Device device = usual_;
    std::vector<KernelChoice> chosen, kernels;
    Plan own{};
    if (make_plan(problem, usual_, options_, {&backend, 1}, own) != ok || own.repacks())
        return {};
    chosen.push_back({text_of(own), own});
    device.calibration = &calibration_;
    for (int i = 0; i < backend_.kernel_count; ++i)
        add_plan(backend_.kernels[i].name, problem, device, kernels);
    std::ranges::stable_sort(kernels, {}, [](const KernelChoice& c) { return c.plan.predicted_us; });
    for (const KernelChoice& kernel : std::span(kernels).first(std::min(kernels.size(), best_plans)))
        add_plan(kernel.text, problem, device, chosen);
    const size_t best = chosen.size();
    if (!kernels.empty())
        std::erase_if(kernels, [bound = slowest * kernels[0].plan.predicted_us](const KernelChoice& c) {
            return c.plan.predicted_us > bound;
        });
    for (size_t i = 0; !kernels.empty() && i < other_plans; ++i)
        add_plan(kernels[random_() / 7 % kernels.size()].text, problem, device, chosen);
    add_variations(problem, device, best, chosen);
    return chosen;
}

void CalibrationRun::refit() { calibration_.backends[0] = fitted().calibration(backend_); }

void CalibrationRun::add(const Product& product, const Stopwatch& stopwatch)
{
    const Problem problem = problem_of(product);
    const std::vector<KernelChoice> plans = choices(problem);
    if (plans.empty())
        return;
    const std::vector<double> us = stopwatch(product, plans);
    if (!std::isfinite(us[0]))
        return;
    for (size_t i = 0; i < plans.size(); ++i)
        if (std::isfinite(us[i]))
            timings_.push_back({problems_, problem, plans[i].plan, us[i], i == 0});
    if (++problems_ % problems_a_fit == 0)
        refit();
}

}  // namespace hg::bench
