#include "autotune.hpp"

#include "statistics.hpp"

#include <algorithm>
#include <stdexcept>

namespace hg::bench {
namespace {

constexpr int finalists = 3, rounds = 3;

struct Candidate {
    size_t which;
    double us;
};

Multiply runner(const CublasLt::Algorithms& algorithms, size_t which)
{
    return [&algorithms, which](const Operands& operands) {
        if (!algorithms.multiply(which, operands))
            throw std::runtime_error("cublasLtMatmul refuses what it ran before");
    };
}

// The first call loads the kernel, which a graph cannot.
std::vector<Candidate> screen(GpuTimer& timer, const std::vector<Operands>& sets,
                              const CublasLt::Algorithms& algorithms)
{
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < algorithms.count(); ++i) {
        if (!algorithms.multiply(i, sets[0]))
            continue;
        timer.wait();
        GpuTimer::Graph graph(timer, sets, std::max(2, static_cast<int>(sets.size())),
                              runner(algorithms, i));
        const double first = graph.time_us();
        candidates.push_back({i, std::min(first, graph.time_us())});
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& x, const Candidate& y) { return x.us < y.us; });
    return candidates;
}

}  // namespace

int fastest(GpuTimer& timer, const std::vector<Operands>& sets, const CublasLt::Algorithms& algorithms)
{
    constexpr int min_launches = 4;
    std::vector<Candidate> best = screen(timer, sets, algorithms);
    if (best.empty())
        return -1;
    best.resize(std::min<size_t>(best.size(), finalists));
    std::vector<std::unique_ptr<GpuTimer::Graph>> graphs;
    std::vector<std::vector<double>> times(best.size());
    for (const Candidate& candidate : best)
        graphs.push_back(std::make_unique<GpuTimer::Graph>(
            timer, sets, GpuTimer::launches_for(best[0].us, sets.size(), min_launches),
            runner(algorithms, candidate.which)));
    for (int round = 0; round < rounds; ++round)
        for (size_t i = 0; i < best.size(); ++i) {
            const size_t turn = round % 2 == 0 ? i : best.size() - 1 - i;
            times[turn].push_back(graphs[turn]->time_us());
        }
    size_t winner = 0;
    for (size_t i = 1; i < best.size(); ++i)
        if (median(times[i]) < median(times[winner]))
            winner = i;
    return static_cast<int>(best[winner].which);
}

}  // namespace hg::bench
