#include "compare.hpp"

#include "cublas.hpp"
#include "gpu_timer.hpp"
#include "nvml.hpp"
#include "ours.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <map>
#include <stdexcept>

namespace hg::bench {
namespace {

using Clock = std::chrono::steady_clock;

class Comparison {
public:
    Comparison(test::Cuda& cuda, const CompareOptions& options)
        : cuda_(cuda), memory_(cuda), timer_(cuda), pairs_(options.pairs),
          cublas_(Cublas::load(options.cublas, memory_, timer_.stream(), &no_cublas_))
    {
        if (ours_.on_host())
            throw std::runtime_error(std::string("compare needs the library on the GPU: ") +
                                     hgemm_build_info());
        ours_.set_stream(timer_.stream());
    }

    bool with_cublas() const { return cublas_ != nullptr; }
    const std::string& no_cublas() const { return no_cublas_; }
    Machine machine() const;
    Measurement measure(const Product& product);

private:
    using Graph = GpuTimer::Graph;

    const Numbers& numbers(hgemm_type_t type) { return numbers_.try_emplace(type, type).first->second; }
    Verdict check_arm(const Product& product, Operands& operands, int64_t split, const Multiply& multiply);
    void warm_up(Graph& ours, Graph& baseline);
    void time_pairs(Graph& ours, Graph& baseline, Graph& again, Measurement& measurement) const;
    void read_clocks(Graph& ours, Measurement& measurement);

    test::Cuda& cuda_;
    test::DeviceMemory memory_;
    GpuTimer timer_;
    int pairs_;
    std::string no_cublas_;
    std::unique_ptr<Cublas> cublas_;
    Ours ours_;
    Nvml nvml_;
    std::map<hgemm_type_t, Numbers> numbers_;
    bool warm_ = false;
};

Machine Comparison::machine() const
{
    const int version = cuda_.driver_version();
    return {cuda_.name(), nvml_.driver_version(), fmt::format("{}.{}", version / 1000, version % 1000 / 10),
            cublas_ ? cublas_->version() : "", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
}

Verdict Comparison::check_arm(const Product& product, Operands& operands, int64_t split,
                              const Multiply& multiply)
{
    return check(numbers(product.type), product, operands, arithmetic_of(cuda_.cc()), split, [&] {
        multiply(operands);
        timer_.wait();
    });
}

// A second of work before the first measurement, a fiftieth before every other.
void Comparison::warm_up(Graph& ours, Graph& baseline)
{
    const auto until = Clock::now() + std::chrono::milliseconds(warm_ ? 20 : 1000);
    while (Clock::now() < until) {
        ours.time_us();
        baseline.time_us();
    }
    warm_ = true;
}

// A, B, B' and then B', B, A, over and over: each arm follows each other equally often.
void Comparison::time_pairs(Graph& ours, Graph& baseline, Graph& again, Measurement& m) const
{
    std::vector<double> our_times, their_times, ratios, own_ratios;
    for (int pair = 0; pair < pairs_; ++pair) {
        double first = 0, a = 0, b = 0;
        if (pair % 2 == 0) {
            first = ours.time_us();
            a = baseline.time_us();
            b = again.time_us();
        } else {
            b = again.time_us();
            a = baseline.time_us();
            first = ours.time_us();
        }
        our_times.push_back(first);
        their_times.push_back(a);
        ratios.push_back(a / first);
        own_ratios.push_back(a / b);
    }
    m.ours.us = median(our_times);
    m.cublas.us = median(their_times);
    m.ratio = median(ratios);
    m.aa_spread = quantile(own_ratios, 0.75) - quantile(own_ratios, 0.25);
}

// While the GPU is busy with our graph, for about a twentieth of a second.
void Comparison::read_clocks(Graph& ours, Measurement& m)
{
    const int repeats = 1 + static_cast<int>(50e3 / (m.ours.us * m.launches));
    for (int i = 0; i < repeats; ++i)
        ours.launch();
    m.sm_mhz = nvml_.sm_mhz();
    m.watts = nvml_.watts();
    timer_.wait();
}

Measurement Comparison::measure(const Product& product)
{
    if (with_cublas() && std::max({product.m, product.n, product.k}) > std::numeric_limits<int>::max())
        throw std::runtime_error(product.shape() + " is too large for cublasGemmEx");
    std::vector<Operands> sets = rotating_operands(cuda_, memory_, numbers(product.type), product);
    const Multiply ours = [&](const Operands& operands) { ours_.multiply(product, operands); };
    const Multiply baseline = [&](const Operands& operands) {
        cublas_ ? cublas_->multiply(product, operands) : ours_.multiply(product, operands);
    };

    const Ours::Choice choice = ours_.explain(product);
    Measurement m{};
    m.product = product;
    m.kernel = choice.kernel;
    m.ours.verdict = check_arm(product, sets[0], choice.split, ours);
    // How cuBLAS splits k is not known; it cannot make more partial sums than there are steps.
    const Arithmetic arithmetic = arithmetic_of(cuda_.cc());
    m.cublas.verdict =
        check_arm(product, sets[0], (product.k + arithmetic.step - 1) / arithmetic.step, baseline);

    m.pairs = pairs_;
    m.sets = static_cast<int>(sets.size());
    m.launches = std::max(timer_.launches_for(sets, ours), timer_.launches_for(sets, baseline));
    Graph our_graph(timer_, sets, m.launches, ours);
    Graph baseline_graph(timer_, sets, m.launches, baseline), again(timer_, sets, m.launches, baseline);
    warm_up(our_graph, baseline_graph);
    time_pairs(our_graph, baseline_graph, again, m);
    read_clocks(our_graph, m);
    m.ours.host_us = timer_.host_us(sets, ours);
    m.cublas.host_us = timer_.host_us(sets, baseline);
    return m;
}

}  // namespace

int compare(const CompareOptions& options)
{
    test::Cuda* cuda = test::Cuda::get();
    if (!cuda)
        throw std::runtime_error("compare needs a GPU: " + test::Cuda::absent());
    Comparison comparison(*cuda, options);
    const Machine machine = comparison.machine();
    if (!comparison.with_cublas())
        fmt::print("cuBLAS was not found, the library is measured alone: {}\n", comparison.no_cublas());
    print_heading(machine);
    Csv csv(options.csv, machine);
    const Progress progress(options.products.size());
    std::vector<Measurement> done;
    size_t wrong = 0;
    for (size_t i = 0; i < options.products.size(); ++i) {
        progress.show(i, options.products[i].shape());
        const Measurement m = comparison.measure(options.products[i]);
        progress.clear();
        print_line(m, comparison.with_cublas());
        csv.write(m);
        done.push_back(m);
        wrong += !m.ours.verdict.right();
    }
    if (comparison.with_cublas() && !done.empty())
        print_summary(done);
    fmt::print("\n{} of {} products right.\n", done.size() - wrong, done.size());
    return wrong == 0 ? 0 : 1;
}

}  // namespace hg::bench
