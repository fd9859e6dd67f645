#include "src/tools/bench/compare.hpp"

#include "src/tools/bench/autotune.hpp"
#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/csv.hpp"
#include "src/tools/bench/mma_sync.hpp"
#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/paired.hpp"
#include "src/tools/bench/progress.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/report.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace hg::bench {
namespace {

// What computes one product; an empty function is one that is not there.
struct Arms {
    Multiply ours, invariant, standard, best;
    std::unique_ptr<CublasLt::Algorithms> algorithms;

    enum class Which { All, WithoutInvariant };
    std::vector<Multiply> list(Which which) const
    {
        std::vector<Multiply> all = {ours};
        if (invariant && which == Which::All)
            all.push_back(invariant);
        for (const Multiply& arm : {best, standard})  // the last one is held against itself
            if (arm)
                all.push_back(arm);
        return all;
    }
};

class Comparison {
public:
    explicit Comparison(const CompareOptions& options)
        : options_(options), device_("compare", options.device), ours_(options.backend, options.kernel)
    {
        if (ours_.on_host())
            throw std::runtime_error(std::string("compare needs the library on the GPU: ") +
                                     hgemm_build_info());
        ours_.set_stream(device_.timer().stream());
        ours_.set_mode(options.mode);
        if (options.batch_invariant) {
            invariant_ = std::make_unique<Ours>(options.backend, options.kernel);
            invariant_->set_stream(device_.timer().stream());
            invariant_->set_mode(HGEMM_MODE_BATCH_INVARIANT);
        }
    }

    Machine machine() const
    {
        Machine machine = device_.machine();
        if (const std::string file = tuning_file(options_.backend, options_.kernel); !file.empty())
            machine["tuning"] = file;
        if (options_.mode != HGEMM_MODE_DEFAULT)
            machine["mode"] = options_.mode == HGEMM_MODE_TREE ? "tree" : "batch-invariant";
        return machine;
    }
    bool has_time_for(const Product& product) const;
    // False if the kernel that was forced does not serve it; hgemm_last_error() says why.
    bool measure(const Product& product, bool noise, Measurement& measurement);

private:
    Arms arms_for(const Product& product);
    void check(const std::vector<Operands>& sets, Arms& arms, Measurement& measurement);
    void find_best(const std::vector<Operands>& sets, const Expectation& expectation, Arms& arms,
                   Measurement& measurement);
    void time_hot(const std::vector<Operands>& sets, const Arms& arms, Measurement& measurement);

    const CompareOptions& options_;
    BenchDevice device_;
    const Limits limits_ = limits_of(device_.machine());
    Ours ours_;
    std::unique_ptr<Ours> invariant_;
};

bool Comparison::has_time_for(const Product& product) const
{
    const double ideal = ideal_us(product);
    const double graph = ideal * GpuTimer::launches_for(ideal, 1, options_.device.min_launches);
    const int arms = invariant_ ? 5 : 4;
    const bool searches = options_.device.baseline == mma_sync_baseline;
    return device_.has_time_for(graph * (arms * options_.pairs + 12) + 60 * ideal +
                                (searches ? mma_sync_search_us(ideal) : 0));
}

Arms Comparison::arms_for(const Product& product)
{
    Arms arms;
    arms.ours = [&, product](const Operands& operands) { ours_.multiply(product, operands); };
    if (invariant_)
        arms.invariant = [&, product](const Operands& operands) {
            invariant_->multiply(product, operands);
        };
    if (Cublas* cublas = device_.cublas_for(product.ungated()))
        arms.standard = [=, other = product.ungated()](const Operands& operands) {
            cublas->multiply(other, operands);
        };
    return arms;
}

void Comparison::check(const std::vector<Operands>& sets, Arms& arms, Measurement& m)
{
    const Ours::Choice choice = ours_.explain(m.product, sets[0]);
    const Expectation expectation = device_.expect(m.product, sets[0]);
    m.kernel = choice.kernel;
    m.error = device_.check(expectation, sets[0], choice.split, arms.ours).any_error();
    if (arms.invariant) {
        const Ours::Choice other = invariant_->explain(m.product, sets[0]);
        m.invariant_kernel = other.kernel;
        m.invariant_error = device_.check(expectation, sets[0], other.split, arms.invariant).any_error();
    }
    const Expectation of_others = device_.expect(m.product.ungated(), sets[0]);
    if (arms.standard)
        m.default_error =
            device_.check(of_others, sets[0], device_.max_slices(m.product), arms.standard).any_error();
    m.launches = device_.launches(m.product, sets, arms.list(Arms::Which::All));
    find_best(sets, of_others, arms, m);
    if (m.best_rank < 0)
        return;
    arms.best = [&lt = *arms.algorithms, which = static_cast<size_t>(m.best_rank)](const Operands& o) {
        if (!lt.multiply(which, o))
            throw std::runtime_error("cublasLtMatmul refuses what it ran before");
    };
    m.best_error =
        device_.check(of_others, sets[0], device_.max_slices(m.product), arms.best, Tanh::Approximate)
            .any_error();
}

void Comparison::find_best(const std::vector<Operands>& sets, const Expectation& expectation, Arms& arms,
                           Measurement& m)
{
    if (options_.device.baseline == mma_sync_baseline) {
        MmaSync found = find_mma_sync(device_, m.product.ungated(), sets, expectation);
        arms.algorithms = std::move(found.algorithms);
        m.best_rank = found.fastest;
        m.best_tried = found.tried;
        m.no_best = found.why_none;
        if (m.best_rank >= 0)
            m.best_algorithm = arms.algorithms->configuration(static_cast<size_t>(m.best_rank)).text();
    } else if (const CublasLt* cublaslt = device_.cublaslt_for(m.product.ungated())) {
        arms.algorithms = cublaslt->algorithms(m.product.ungated(), sets, options_.algorithms);
        m.best_rank = fastest(device_.timer(), sets, *arms.algorithms);
    }
    if (arms.algorithms)
        m.algorithms = static_cast<int>(arms.algorithms->count());
}

void Comparison::time_hot(const std::vector<Operands>& sets, const Arms& arms, Measurement& m)
{
    constexpr double max_bytes = 20e6;
    if (!options_.hot || m.product.bytes() >= max_bytes)
        return;
    const Paired hot = time_paired(device_.timer(), {sets[0]}, arms.list(Arms::Which::WithoutInvariant),
                                   {m.launches, options_.pairs, false});
    m.hot_us = hot.us[0];
    size_t arm = 1;
    if (arms.best)
        m.hot_ratio_best = hot.ratios[arm++];
    if (arms.standard)
        m.hot_ratio_default = hot.ratios[arm];
}

bool Comparison::measure(const Product& product, bool noise, Measurement& m)
{
    const std::vector<Operands> sets = device_.operands(product);
    if (!ours_.serves(product, sets[0]))
        return false;
    m = {};
    m.product = product;
    m.floor_us = floor_us(product, limits_);
    m.pairs = options_.pairs;
    m.sets = static_cast<int>(sets.size());
    Arms arms = arms_for(product);
    check(sets, arms, m);
    const auto read_clocks = [&] {
        m.sm_mhz = device_.nvml().sm_mhz();
        m.watts = device_.nvml().watts();
    };
    const Paired cold = time_paired(device_.timer(), sets, arms.list(Arms::Which::All),
                                    {m.launches, options_.pairs, noise, read_clocks});
    m.ours_us = cold.us[0];
    size_t arm = 1;
    if (arms.invariant) {
        m.invariant_us = cold.us[arm];
        m.invariant_cost = cold.ratios[arm++];
    }
    if (arms.best) {
        m.best_us = cold.us[arm];
        m.ratio_best = cold.ratios[arm++];
    }
    if (arms.standard) {
        m.default_us = cold.us[arm];
        m.ratio_default = cold.ratios[arm];
    }
    m.aa_spread = cold.aa_spread;
    time_hot(sets, arms, m);
    m.host_us = device_.timer().host_us(sets, m.ours_us, arms.ours);
    if (arms.standard)
        m.default_host_us = device_.timer().host_us(sets, m.default_us, arms.standard);
    return true;
}

bool is_among(const std::vector<Measurement>& rows, const Product& product)
{
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Measurement& m) { return m.product == product; });
}

}  // namespace

int compare(const CompareOptions& options)
{
    constexpr size_t noise_every = 8;
    Comparison comparison(options);
    Run run{comparison.machine(), {}};
    if (options.resume && std::filesystem::exists(options.files.csv)) {
        Run before = read_csv(options.files.csv, Unfinished::Allowed);
        require_same_baseline(options.files.csv, before.machine, options.device.baseline);
        run.rows = std::move(before.rows);
    }
    Csv csv(options.files.csv, run.machine, run.rows);
    fmt::print("{}", heading(run.machine));
    const Progress progress(options.products.size());
    size_t wrong = 0, done = 0;
    for (const Product& product : options.products) {
        progress.show(done, product.shape());
        if (is_among(run.rows, product)) {
            ++done;
            continue;
        }
        if (!comparison.has_time_for(product))
            break;
        Measurement m;
        const bool served = comparison.measure(product, options.noise || done % noise_every == 0, m);
        ++done;
        progress.clear();
        if (!served) {
            fmt::print("{:>22} not served: {}\n", product.shape(), hgemm_last_error());
            continue;
        }
        fmt::print("{}\n", line(m));
        std::fflush(stdout);
        csv.write(m);
        wrong += m.error > 1 || m.invariant_error > 1;
        run.rows.push_back(m);
    }
    progress.clear();
    fmt::print("{}", summary(run));
    if (done < options.products.size())
        fmt::print("\nOut of time: {}.\n", products_left(options.products.size() - done));
    fmt::print("\n{} of {} products right.\n", run.rows.size() - wrong, run.rows.size());
    write_files(run, options.files);
    return wrong == 0 ? 0 : 1;
}

}  // namespace hg::bench
