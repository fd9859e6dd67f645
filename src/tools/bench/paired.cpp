#include "src/tools/bench/paired.hpp"

#include "src/tools/bench/statistics.hpp"

#include <memory>

namespace hg::bench {

Paired time_paired(GpuTimer& timer, const std::vector<Operands>& sets, const std::vector<Multiply>& arms,
                   const PairedOptions& options)
{
    std::vector<std::unique_ptr<GpuTimer::Graph>> graphs;
    for (const Multiply& multiply : arms)
        graphs.push_back(std::make_unique<GpuTimer::Graph>(timer, sets, options.launches, multiply));
    const size_t turns = arms.size() + (options.noise ? 1 : 0);
    std::vector<std::vector<double>> times(turns), ratios(arms.size());
    std::vector<double> own_ratios;
    for (int pair = 0; pair < options.pairs; ++pair) {
        for (size_t i = 0; i < turns; ++i) {
            const size_t turn = pair % 2 == 0 ? i : turns - 1 - i;
            GpuTimer::Graph& graph = *graphs[std::min(turn, arms.size() - 1)];
            graph.start();
            if (turn == 0 && pair == options.pairs / 2 && options.busy)
                options.busy();
            times[turn].push_back(graph.finish_us());
        }
        for (size_t i = 0; i < arms.size(); ++i)
            ratios[i].push_back(times[i].back() / times[0].back());
        if (options.noise)
            own_ratios.push_back(times[turns - 2].back() / times[turns - 1].back());
    }
    Paired result;
    for (size_t i = 0; i < arms.size(); ++i) {
        result.us.push_back(median(times[i]));
        result.ratios.push_back(median(ratios[i]));
    }
    result.aa_spread = quantile(own_ratios, 0.75) - quantile(own_ratios, 0.25);
    return result;
}

}  // namespace hg::bench
