#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/candidates.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/params.hpp"
#include "src/plan/backend.hpp"

namespace hg::sm90 {
namespace {

constexpr const Config& tree_config = tree_configs[0];

const char* tree_refusal(const Facts& f, const Options& o)
{
    if (is_forced_away(o, kernels[first_tree]) || o.split > 1 || o.swap_ab == SwapAb::On ||
        o.stream_k == StreamK::On || !o.takes_cluster(tree_config.ctas()))
        return "what was forced does not fit";
    if (f.problem.k % (f.problem.leaves * tile_k) != 0)
        return "a leaf of k is no multiple of 64";
    if (const char* const why_not = tma_refusal(f))
        return why_not;
    return can_store(tree_config, f, false) ? nullptr : "TMA cannot store D, or load C";
}

// The model and calibrations know the kernel with the same tiles that does not cut K.
Candidate tree_candidate(const Problem& p)
{
    static constexpr int like = kernel_named("sm90_pingpong_128x128_2x1");
    static_assert(configs[like].tile_m == tree_config.tile_m &&
                  configs[like].tile_n == tree_config.tile_n &&
                  configs[like].cluster_m == tree_config.cluster_m &&
                  configs[like].cluster_n == tree_config.cluster_n);
    return {like, false, 1, false, count_clusters(p, tree_config, false), false};
}

}  // namespace

bool choose_tree(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    constexpr double slower = 1.04;  // than the model says of the other kernel: H200, as many products
    const Facts facts(p);
    const int sm_count = o.sm_count(device);
    const Candidate candidate = tree_candidate(p);
    plan.refusal = tree_refusal(facts, o);
    if (!plan.refusal && (candidate.clusters > max_tiles || sm_count < tree_config.ctas()))
        plan.refusal = "more than 2^30 tiles, or fewer SMs than a cluster has CTAs";
    if (plan.refusal)
        return false;
    const Factors& factors = KernelFactors(device, kernels)[candidate.kernel];
    const Prediction prediction = predict(facts, candidate, sm_count, factors);
    plan.kernel = first_tree;
    plan.variant = major_variant(p.type_ab, p.a, p.b);
    plan.split = 1;
    plan.cluster = tree_config.ctas();
    plan.pdl = o.pdl == Pdl::Free ? prediction.pdl : o.pdl;
    plan.tiles = candidate.clusters;
    plan.grid = persistent_clusters(p, tree_config, candidate, sm_count) * plan.cluster;
    plan.predicted_us = slower * prediction.us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    plan.workspace = static_cast<size_t>(tree_bytes(tree_config, plan.grid, stored_levels(p.leaves)));
    decide_details(facts, sm_count, plan);
    return true;
}

}  // namespace hg::sm90
