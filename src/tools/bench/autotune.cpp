#include "src/tools/bench/autotune.hpp"

#include "src/tools/bench/statistics.hpp"

#include <algorithm>
#include <numeric>
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

void sort(std::vector<Candidate>& candidates)
{
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& x, const Candidate& y) { return x.us < y.us; });
}

// The first call loads the kernel, which a graph cannot.
std::vector<Candidate> screen(GpuTimer& timer, const std::vector<Operands>& sets,
                              const CublasLt::Algorithms& algorithms, const std::vector<size_t>& among)
{
    std::vector<Candidate> candidates;
    for (const size_t i : among) {
        if (!algorithms.multiply(i, sets[0]))
            continue;
        timer.wait();
        GpuTimer::Graph graph(timer, sets, std::max(2, static_cast<int>(sets.size())),
                              runner(algorithms, i));
        const double first = graph.time_us();
        candidates.push_back({i, std::min(first, graph.time_us())});
    }
    sort(candidates);
    return candidates;
}

int fastest_among(GpuTimer& timer, const std::vector<Operands>& sets,
                  const CublasLt::Algorithms& algorithms, const std::vector<size_t>& among)
{
    constexpr int min_launches = 4;
    std::vector<Candidate> best = screen(timer, sets, algorithms, among);
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

}  // namespace

int fastest(GpuTimer& timer, const std::vector<Operands>& sets, const CublasLt::Algorithms& algorithms)
{
    std::vector<size_t> all(algorithms.count());
    std::iota(all.begin(), all.end(), size_t{0});
    return fastest_among(timer, sets, algorithms, all);
}

int fastest_of_many(GpuTimer& timer, const std::vector<Operands>& sets,
                    const CublasLt::Algorithms& algorithms, const std::function<bool(size_t)>& is_right)
{
    constexpr size_t keep = 32, launches = 2;
    size_t next = 0;  // set of operands: each timed launch takes the one that has waited longest
    const auto time_us = [&](size_t which) {
        if (!algorithms.multiply(which, sets[next]))
            return unknown;
        timer.wait();
        std::vector<Operands> turns;
        for (size_t i = 0; i < launches; ++i) {
            next = (next + 1) % sets.size();
            turns.push_back(sets[next]);
        }
        return GpuTimer::Graph(timer, turns, static_cast<int>(launches), runner(algorithms, which))
            .time_us();
    };
    return fastest_among(timer, sets, algorithms, shortlist(algorithms.count(), keep, time_us, is_right));
}

std::vector<size_t> shortlist(size_t count, size_t keep, const std::function<double(size_t)>& time_us,
                              const std::function<bool(size_t)>& is_right)
{
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < count; ++i)
        if (const double us = time_us(i); known(us))
            candidates.push_back({i, us});
    sort(candidates);
    std::vector<size_t> kept;
    for (size_t i = 0; i < candidates.size() && kept.size() < keep; ++i)
        if (is_right(candidates[i].which))
            kept.push_back(candidates[i].which);
    return kept;
}

}  // namespace hg::bench
