#include "src/tools/bench/kernels.hpp"

#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/mma_sync.hpp"
#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/paired.hpp"
#include "src/tools/bench/progress.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/support/environment.hpp"
#include "src/tools/support/kernel_names.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

namespace hg::bench {
namespace {

// The name of the baseline's column: "default" is cublasGemmEx.
std::string csv_heading(const std::string& baseline)
{
    const std::string name = baseline == mma_sync_baseline ? "mma_sync" : "default";
    return "m,n,k,batch,layout,dtype,offset,pad,kernel,chosen,ours," + name + ",ratio_" + name +
           ",tflops,ideal,predicted,error";
}

struct TimedKernel {
    std::string name;
    bool chosen;  // what the library takes if nothing is forced
    double us, predicted_us, error;
    double ratio = unknown;  // median over the rounds of the baseline's time over this one's
};

struct Standard {
    std::string name = "cublasGemmEx";
    Multiply multiply;  // empty where there is none
    std::unique_ptr<CublasLt::Algorithms> algorithms;
    double us = unknown;
};

std::string key_of(const Product& p)
{
    return fmt::format("{},{},{},{},{},{},{},{},", p.m, p.n, p.k, p.batch, p.layout, test::name_of(p.type),
                       p.offset, p.pad);
}

class Trials {
public:
    explicit Trials(const KernelsOptions& options) : options_(options), device_("kernels", options.device)
    {
        for (const std::string& name : options.kernels.empty() ? test::kernel_names() : options.kernels)
            open(name);
        if (forced_.empty())
            throw std::runtime_error("none of the kernels runs on " + device_.cuda().name());
        free_.set_stream(device_.timer().stream());
    }

    Machine machine() const { return device_.machine(); }
    bool has_time_for(const Product& product) const;
    // Times of all kernels that serve the product, and of the baseline.
    std::vector<TimedKernel> measure(const Product& product, Standard& standard);

private:
    struct Forced {
        std::string name;
        std::unique_ptr<Ours> library;
    };
    void open(const std::string& name);
    Standard standard_for(const Product& product, const std::vector<Operands>& sets,
                          const Expectation& expectation);
    void time(const Product& product, const std::vector<Operands>& sets, const std::vector<Multiply>& arms,
              std::vector<TimedKernel>& timed, Standard& standard);

    const KernelsOptions& options_;
    BenchDevice device_;
    Ours free_;
    std::vector<Forced> forced_;
};

// A kernel for another device is refused when the handle is created.
void Trials::open(const std::string& name)
{
    try {
        forced_.push_back({name, std::make_unique<Ours>("", name)});
        forced_.back().library->set_stream(device_.timer().stream());
    } catch (const std::runtime_error& error) {
        fmt::print("{} is left out: {}\n", name, error.what());
    }
}

bool Trials::has_time_for(const Product& product) const
{
    const double ideal = ideal_us(product);
    const double graph = ideal * GpuTimer::launches_for(ideal, 1, options_.device.min_launches);
    const size_t arms = forced_.size() + options_.others.size() + 1;
    const bool searches = options_.device.baseline == mma_sync_baseline;
    return device_.has_time_for(2 * graph * static_cast<double>(arms) * (options_.pairs + 2) +
                                (searches ? mma_sync_search_us(ideal) : 0));
}

Standard Trials::standard_for(const Product& product, const std::vector<Operands>& sets,
                              const Expectation& expectation)
{
    Standard standard;
    if (options_.device.baseline == mma_sync_baseline) {
        MmaSync found = find_mma_sync(device_, product, sets, expectation);
        standard.name = "no mma.sync baseline for this problem: " + found.why_none;
        if (found.fastest < 0)
            return standard;
        const auto which = static_cast<size_t>(found.fastest);
        standard.algorithms = std::move(found.algorithms);
        standard.name =
            fmt::format("mma.sync {} of {}", standard.algorithms->configuration(which).text(), found.tried);
        standard.multiply = [&algorithms = *standard.algorithms, which](const Operands& operands) {
            if (!algorithms.multiply(which, operands))
                throw std::runtime_error("cublasLtMatmul refuses what it ran before");
        };
    } else if (Cublas* const cublas = device_.cublas_for(product)) {
        standard.multiply = [=](const Operands& operands) { cublas->multiply(product, operands); };
    }
    return standard;
}

std::vector<TimedKernel> Trials::measure(const Product& product, Standard& standard)
{
    const std::vector<Operands> sets = device_.operands(product);
    const Expectation expectation = device_.expect(product, sets[0]);
    const std::string chosen = free_.explain(product, sets[0]).kernel;
    std::vector<TimedKernel> timed;
    std::vector<Multiply> arms;
    for (const Forced& forced : forced_) {
        Ours& library = *forced.library;
        if (!library.serves(product, sets[0]))
            continue;
        const Ours::Choice choice = library.explain(product, sets[0]);
        arms.push_back([&](const Operands& o) { library.multiply(product, o); });
        const double error = device_.check(expectation, sets[0], choice.split, arms.back()).any_error();
        timed.push_back({forced.name, forced.name == chosen, unknown, choice.predicted_us, error});
    }
    for (const OtherKernel& other : options_.others) {
        if (!other.serves(product))
            continue;
        arms.push_back([&](const Operands& o) { other.multiply(product, o, device_.timer().stream()); });
        timed.push_back({other.name, false, unknown, unknown,
                         device_.check(expectation, sets[0], 1, arms.back()).any_error()});
    }
    standard = standard_for(product, sets, expectation);
    time(product, sets, arms, timed, standard);
    return timed;
}

// Times the arms once, then those that are not far behind in turn with the baseline.
void Trials::time(const Product& product, const std::vector<Operands>& sets,
                  const std::vector<Multiply>& arms, std::vector<TimedKernel>& timed, Standard& standard)
{
    double fastest = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < arms.size(); ++i) {
        GpuTimer::Graph graph(device_.timer(), sets, std::max(2, static_cast<int>(sets.size())), arms[i]);
        timed[i].us = graph.time_us();
        fastest = std::min(fastest, timed[i].us);
    }
    std::vector<Multiply> close;
    if (standard.multiply) {
        close.push_back(standard.multiply);
        close.back()(sets[0]);  // loads the kernel, which a graph cannot
        device_.timer().wait();
    }
    const size_t first = close.size();
    std::vector<TimedKernel*> kernels;
    for (size_t i = 0; i < arms.size(); ++i)
        if (timed[i].us <= options_.within * fastest) {
            close.push_back(arms[i]);
            kernels.push_back(&timed[i]);
        }
    if (close.empty())
        return;
    const int launches = device_.launches(product, sets, {close.front()});
    const Paired paired = time_paired(device_.timer(), sets, close, {launches, options_.pairs, false});
    for (size_t i = 0; i < kernels.size(); ++i) {
        kernels[i]->us = paired.us[first + i];
        kernels[i]->ratio = standard.multiply ? 1 / paired.ratios[first + i] : unknown;
    }
    if (standard.multiply)
        standard.us = paired.us[0];
}

// The lines of an earlier run's file; an unfinished one is left out.
std::vector<std::string> lines_before(const KernelsOptions& options)
{
    std::vector<std::string> lines;
    std::ifstream file(options.csv);
    const std::string columns = csv_heading(options.device.baseline);
    const auto commas = std::count(columns.begin(), columns.end(), ',');
    Machine machine;
    for (std::string line; options.resume && std::getline(file, line);)
        if (line.rfind("# baseline: ", 0) == 0)
            machine["baseline"] = line.substr(line.find(": ") + 2);
        else if (!line.empty() && line[0] >= '0' && line[0] <= '9' && !file.eof() &&
                 std::count(line.begin(), line.end(), ',') == commas)
            lines.push_back(line);
    if (!lines.empty())
        require_same_baseline(options.csv, machine, options.device.baseline);
    return lines;
}

std::string csv_line(const Product& p, const TimedKernel& t, double standard)
{
    const auto cell = [](double value) { return known(value) ? fmt::format("{:.4f}", value) : ""; };
    const double ratio = known(t.ratio) ? t.ratio : standard / t.us;
    return fmt::format("{}{},{},{},{},{},{:.3f},{:.3f},{},{:.4f}", key_of(p), t.name, t.chosen ? 1 : 0,
                       cell(t.us), cell(standard), cell(ratio), p.flops() / t.us * 1e-6, ideal_us(p),
                       cell(t.predicted_us), t.error);
}

void print(const Product& p, std::vector<TimedKernel> timed, const Standard& standard)
{
    std::sort(timed.begin(), timed.end(),
              [](const TimedKernel& x, const TimedKernel& y) { return x.us < y.us; });
    fmt::print("{:<5}{:<3}{:>20}  ideal {:.2f}  {} {}\n", test::name_of(p.type), p.layout, p.shape(),
               ideal_us(p), standard.name, known(standard.us) ? fmt::format("{:.2f}", standard.us) : "-");
    for (const TimedKernel& t : timed)
        fmt::print("    {:<30}{:>10.2f} us{:>9.1f} TFLOP/s  predicted {:>9}{}{}\n", t.name, t.us,
                   p.flops() / t.us * 1e-6,
                   known(t.predicted_us) ? fmt::format("{:.2f}", t.predicted_us) : "-",
                   t.chosen ? "  chosen" : "", t.error > 1 ? "  WRONG" : "");
    std::fflush(stdout);
}

}  // namespace

int time_kernels(const KernelsOptions& options)
{
    const test::Variable no_tuning("HGEMM_TUNING", "off");  // `chosen` is the library's own choice
    Trials trials(options);
    const std::vector<std::string> before = lines_before(options);
    std::ofstream csv;
    if (!options.csv.empty()) {
        csv.open(options.csv);
        for (const auto& [name, value] : trials.machine())
            csv << "# " << name << ": " << value << "\n";
        csv << csv_heading(options.device.baseline) << "\n";
        for (const std::string& line : before)
            csv << line << "\n";
        if (!csv.flush())
            throw std::runtime_error("cannot write " + options.csv);
    }
    const Progress progress(options.products.size());
    size_t wrong = 0, done = 0;
    for (const Product& product : options.products) {
        const std::string key = key_of(product);
        progress.show(done, product.shape());
        if (std::any_of(before.begin(), before.end(),
                        [&](const std::string& line) { return line.rfind(key, 0) == 0; })) {
            ++done;
            continue;
        }
        if (!trials.has_time_for(product))
            break;
        Standard standard;
        const std::vector<TimedKernel> timed = trials.measure(product, standard);
        ++done;
        progress.clear();
        print(product, timed, standard);
        std::string lines;
        for (const TimedKernel& t : timed) {
            lines += csv_line(product, t, standard.us) + "\n";
            wrong += t.error > 1;
        }
        csv << lines << std::flush;
    }
    progress.clear();
    if (done < options.products.size())
        fmt::print("\nOut of time: {}.\n", products_left(options.products.size() - done));
    fmt::print("\n{} wrong results.\n", wrong);
    return wrong == 0 ? 0 : 1;
}

}  // namespace hg::bench
