#include "src/tools/bench/candidates.hpp"

#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/progress.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/support/environment.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>

namespace hg::bench {
namespace {

struct Asked {
    Product product;
    std::vector<std::string> candidates;
};

std::vector<Asked> read(const CandidatesOptions& options)
{
    std::vector<Asked> asked;
    std::ifstream file(options.file);
    const hgemm_type_t type = options.dtype == "f16" ? HGEMM_F16 : HGEMM_BF16;
    for (std::string line; std::getline(file, line);) {
        Product p{};
        std::string candidate;
        std::istringstream words(line);
        words >> p.m >> p.n >> p.k;
        if (words.peek() == 'x')
            words.ignore() >> p.batch;
        if (!(words >> p.layout >> candidate) || p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1 ||
            (p.layout != "tn" && p.layout != "nn" && p.layout != "nt" && p.layout != "tt"))
            throw std::runtime_error("not \"m n k layout candidate\": " + line);
        p.type = type;
        if (asked.empty() || asked.back().product != p)
            asked.push_back({p, {}});
        asked.back().candidates.push_back(candidate);
    }
    if (asked.empty())
        throw std::runtime_error("no candidates in " + options.file);
    return asked;
}

struct Timed {
    std::string candidate, kernel;
    Multiply multiply;
    double error, us = unknown;
};

constexpr const char *automatic = "auto", *standard = "cublas";

class Turns {
public:
    explicit Turns(const CandidatesOptions& options)
        : options_(options), device_("candidates", options.device), random_(options.seed)
    {
        free_.set_stream(device_.timer().stream());
    }

    bool has_time_for(const Asked& asked) const;
    // What the library chooses, cublasGemmEx if it is there, and the candidates that serve the product.
    std::vector<Timed> measure(const Asked& asked);

private:
    Ours* library(const std::string& candidate);
    void add(std::vector<Timed>& timed, const std::string& candidate, Ours& library, const Product& product,
             const Operands& operands, const Expectation& expectation);
    void time(const Product& product, const std::vector<Operands>& sets, std::vector<Timed>& timed);

    const CandidatesOptions& options_;
    BenchDevice device_;
    std::minstd_rand random_;
    Ours free_;
    std::map<std::string, std::unique_ptr<Ours>> libraries_;
};

bool Turns::has_time_for(const Asked& asked) const
{
    const double ideal = ideal_us(asked.product);
    const double graph = ideal * GpuTimer::launches_for(ideal, 1, options_.device.min_launches);
    return device_.has_time_for(2 * graph * static_cast<double>(asked.candidates.size() + 2) *
                                (options_.rounds + 2));
}

// Null for a candidate that the library or the device does not have.
Ours* Turns::library(const std::string& candidate)
{
    const auto [place, is_new] = libraries_.try_emplace(candidate);
    if (!is_new)
        return place->second.get();
    try {
        place->second = std::make_unique<Ours>("", candidate);
    } catch (const std::runtime_error& error) {
        fmt::print(stderr, "{}: {}\n", candidate, error.what());
        return nullptr;
    }
    place->second->set_stream(device_.timer().stream());
    return place->second.get();
}

void Turns::add(std::vector<Timed>& timed, const std::string& candidate, Ours& library,
                const Product& product, const Operands& operands, const Expectation& expectation)
{
    if (!library.serves(product, operands))
        return;
    const Multiply multiply = [&library, product](const Operands& o) { library.multiply(product, o); };
    const Ours::Choice choice = library.explain(product, operands);
    timed.push_back({candidate, choice.kernel, multiply,
                     device_.check(expectation, operands, choice.split, multiply).any_error()});
}

std::vector<Timed> Turns::measure(const Asked& asked)
{
    const Product& product = asked.product;
    if (libraries_.size() + asked.candidates.size() > static_cast<size_t>(options_.handles))
        libraries_.clear();
    const std::vector<Operands> sets = device_.operands(product);
    const Expectation expectation = device_.expect(product, sets[0]);
    std::vector<Timed> timed;
    add(timed, automatic, free_, product, sets[0], expectation);
    for (const std::string& candidate : asked.candidates)
        if (Ours* forced = library(candidate))
            add(timed, candidate, *forced, product, sets[0], expectation);
    if (Cublas* cublas = device_.cublas_for(product)) {
        const Multiply multiply = [=](const Operands& o) { cublas->multiply(product, o); };
        timed.push_back(
            {standard, "", multiply,
             device_.check(expectation, sets[0], device_.max_slices(product), multiply).any_error()});
    }
    time(product, sets, timed);
    return timed;
}

// The first round is not counted.
void Turns::time(const Product& product, const std::vector<Operands>& sets, std::vector<Timed>& timed)
{
    const int launches = device_.launches(product, sets, {timed.front().multiply});
    std::vector<std::unique_ptr<GpuTimer::Graph>> graphs;
    for (const Timed& t : timed)
        graphs.push_back(std::make_unique<GpuTimer::Graph>(device_.timer(), sets, launches, t.multiply));
    std::vector<std::vector<double>> times(timed.size());
    std::vector<size_t> order(timed.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (int round = 0; round <= options_.rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random_);
        for (const size_t i : order) {
            const double us = graphs[i]->time_us();
            if (round > 0)
                times[i].push_back(us);
        }
    }
    for (size_t i = 0; i < timed.size(); ++i)
        timed[i].us = median(times[i]);
}

const Timed* find(const std::vector<Timed>& timed, const char* candidate)
{
    const auto found =
        std::find_if(timed.begin(), timed.end(), [&](const Timed& t) { return t.candidate == candidate; });
    return found == timed.end() ? nullptr : &*found;
}

// The library's own among them.
const Timed& fastest(const std::vector<Timed>& timed)
{
    return *std::min_element(timed.begin(), timed.end(), [](const Timed& x, const Timed& y) {
        return (x.candidate == standard) != (y.candidate == standard) ? y.candidate == standard
                                                                      : x.us < y.us;
    });
}

void print(const Product& p, const std::vector<Timed>& timed)
{
    const Timed &chosen = *find(timed, automatic), &best = fastest(timed);
    const Timed* const theirs = find(timed, standard);
    fmt::print("{:<5}{:<3}{:>20}  {:>9.2f} us {:<28} {:>5.1f} % over {}{}\n", test::name_of(p.type),
               p.layout, p.shape(), chosen.us, chosen.kernel, 100 * (chosen.us / best.us - 1),
               best.candidate, theirs ? fmt::format("; cublasGemmEx {:.2f} us", theirs->us) : "");
    for (const Timed& t : timed)
        if (t.error > 1)
            fmt::print("    {} is WRONG\n", t.candidate);
    std::fflush(stdout);
}

std::string lines(const Product& p, const std::vector<Timed>& timed)
{
    std::string text;
    for (const Timed& t : timed)
        text += fmt::format("{} {} {}{} {} {} {:.3f}\n", p.m, p.n, p.k,
                            p.batch > 1 ? fmt::format("x{}", p.batch) : "", p.layout, t.candidate, t.us);
    return text;
}

}  // namespace

int time_candidates(const CandidatesOptions& options)
{
    std::optional<test::Variable> no_tuning;
    if (!options.tuned)
        no_tuning.emplace("HGEMM_TUNING", "off");
    const std::vector<Asked> all = read(options);
    Turns turns(options);
    std::ofstream out;
    if (!options.out.empty())
        out.open(options.out);
    if (!out)
        throw std::runtime_error("cannot write " + options.out);
    const Progress progress(all.size());
    std::vector<double> over;
    ptrdiff_t wrong = 0;
    for (const Asked& asked : all) {
        progress.show(over.size(), asked.product.shape());
        if (!turns.has_time_for(asked))
            break;
        const std::vector<Timed> timed = turns.measure(asked);
        progress.clear();
        print(asked.product, timed);
        out << lines(asked.product, timed) << std::flush;
        over.push_back(find(timed, automatic)->us / fastest(timed).us);
        wrong += std::count_if(timed.begin(), timed.end(), [](const Timed& t) { return t.error > 1; });
    }
    progress.clear();
    if (over.size() < all.size())
        fmt::print("\nOut of time: {}.\n", products_left(all.size() - over.size()));
    fmt::print(
        "\nWhat the library chooses takes {:.1f} % longer than the fastest, mean of {} products; {} wrong "
        "results.\n",
        100 * (geomean(over) - 1), over.size(), wrong);
    return wrong == 0 ? 0 : 1;
}

}  // namespace hg::bench
