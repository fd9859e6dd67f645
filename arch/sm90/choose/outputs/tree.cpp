#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/candidates.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/params.hpp"
#include "src/plan/backend.hpp"

#include <algorithm>
#include <array>

namespace hg::sm90 {
namespace {

constexpr bool are_alike(const Config& a, const Config& b)
{
    return a.is_split() == b.is_split() && a.is_global() == b.is_global() && a.tile_m == b.tile_m &&
           a.tile_n == b.tile_n && a.cluster_m == b.cluster_m && a.cluster_n == b.cluster_n &&
           a.ctas_per_sm == b.ctas_per_sm;
}

// The model and calibrations know the kernel of the same tiles that does not cut K into leaves.
constexpr auto alike = [] {
    std::array<int, tree_count> found{};
    for (int i = 0; i < tree_count; ++i)
        while (!are_alike(tree_configs[i], configs[found[i]]))
            ++found[i];
    return found;
}();

const char* tree_refusal(const Facts& f)
{
    if (f.problem.k % (f.problem.leaves * tile_k) != 0)
        return "a leaf of k is no multiple of 64";
    return tma_refusal(f);
}

int64_t grid_of(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    return c.is_split() ? candidate.clusters * c.cluster_ctas(candidate.split)
                        : persistent_clusters(p, c, candidate, sm_count) * c.ctas();
}

size_t workspace_of(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    return c.is_split() ? 0
                        : static_cast<size_t>(
                              tree_bytes(c, grid_of(p, c, candidate, sm_count), stored_levels(p.leaves)));
}

// Slices of a cluster are whole branches of as many leaves as there are registers for. A persistent kernel
// has one slice, and stores by TMA alone. Where the second tile of its clusters would lie outside of D the
// model expects too much of it: 128 x 8192 x 14336 99 us, measured 124 (H200).
bool is_possible(const Facts& f, int index, const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = tree_configs[index];
    const int64_t leaves = f.problem.leaves, split = candidate.split;
    if (is_forced_away(o, kernels[first_tree + index]) || o.stream_k == StreamK::On ||
        candidate.clusters > max_tiles || (o.split > 0 && o.split != split) ||
        (o.swap_ab != SwapAb::Free && (o.swap_ab == SwapAb::On) != candidate.swap_ab))
        return false;
    if (!c.is_split())
        return split == 1 && !candidate.swap_ab && (*o.kernel || f.problem.m > c.tile_m) &&
               sm_count >= c.ctas() && o.takes_cluster(c.ctas()) &&
               workspace_of(f.problem, c, candidate, sm_count) <= o.workspace && can_store(c, f, false);
    return leaves % split == 0 && leaves / split <= max_slice_leaves &&
           can_split(c, static_cast<int>(split)) &&
           o.takes_cluster(c.cluster_ctas(static_cast<int>(split))) &&
           (o.sm_limit == 0 || candidate.clusters * split <= sm_count);
}

struct TreeChoice {
    int index = -1;  // of tree_configs
    Candidate candidate{};
    Prediction prediction{};
};

// Calls visit(index, candidate) for all that could be.
template <typename Visit>
void for_each_tree_candidate(const Problem& p, Visit visit)
{
    for (int index = 0; index < tree_count; ++index)
        for (const bool swap_ab : {false, true})
            for (int split = 1; split <= max_cluster; split *= 2)
                visit(index, Candidate{alike[index], swap_ab, split, false,
                                       count_clusters(p, tree_configs[index], swap_ab), false});
}

TreeChoice best_tree(const Facts& f, const Device& device, const Options& o, int sm_count)
{
    // Than the model says of the kernel alike (H200, 30 products), and from leaf to leaf.
    constexpr double slower = 1.04, leaf_us = 0.3;
    const KernelFactors factors(device, kernels);
    TreeChoice best;
    for_each_tree_candidate(f.problem, [&](int index, const Candidate& candidate) {
        if (!is_possible(f, index, candidate, o, sm_count))
            return;
        Prediction prediction = predict(f, candidate, sm_count, factors[candidate.kernel]);
        prediction.us *= slower;
        if (const Config& c = tree_configs[index]; c.is_split()) {
            const int64_t ctas = grid_of(f.problem, c, candidate, sm_count);
            const int64_t waves = ceil_div(ctas, int64_t{sm_count} * c.ctas_per_sm);
            prediction.us += leaf_us * static_cast<double>(waves * (f.problem.leaves / candidate.split));
        }
        if (best.index < 0 || prediction.us < best.prediction.us)
            best = {index, candidate, prediction};
    });
    return best;
}

}  // namespace

bool choose_tree(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    const Facts facts(p);
    const int sm_count = o.sm_count(device);
    plan.refusal = tree_refusal(facts);
    if (plan.refusal)
        return false;
    const auto [index, candidate, prediction] = best_tree(facts, device, o, sm_count);
    if (index < 0) {
        plan.refusal = "no kernel stores D and loads C, or what was forced does not fit";
        return false;
    }
    const Config& c = tree_configs[index];
    const Mma mma(p, candidate.swap_ab);
    plan.kernel = first_tree + index;
    plan.variant = entry_of(plan.kernel, major_variant(p.type_ab, mma.a, mma.b));
    plan.swap_ab = candidate.swap_ab;
    plan.split = candidate.split;
    plan.cluster = c.cluster_ctas(plan.split);
    plan.pdl = o.pdl == Pdl::Free ? prediction.pdl : o.pdl;
    plan.tiles = candidate.clusters;
    plan.grid = grid_of(p, c, candidate, sm_count);
    plan.predicted_us = prediction.us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    plan.workspace = workspace_of(p, c, candidate, sm_count);
    decide_details(facts, sm_count, plan);
    return true;
}

}  // namespace hg::sm90
