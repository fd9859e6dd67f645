#include "arch/sm90/choose/choose.hpp"

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/repack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/candidates.hpp"
#include "arch/sm90/choose/contest.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/direct.hpp"
#include "arch/sm90/choose/grouped.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/choose/repack.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "arch/sm90/params.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace hg::sm90 {
namespace {

const char* refusal(const Problem& p) { return p.k == 0 ? "k is 0" : extent_refusal(p); }

void fill(const Problem& p, const Candidate& candidate, const Prediction& prediction, int sm_count,
          const Options& o, Plan& plan)
{
    const Config& c = configs[candidate.kernel];
    plan.kernel = candidate.kernel;
    plan.swap_ab = candidate.swap_ab;
    plan.split = candidate.split;
    plan.sm90.stream_k = candidate.stream_k;
    plan.cluster = c.cluster_ctas(candidate.split);
    const Pdl pdl = o.pdl == Pdl::Free ? prediction.pdl : o.pdl;
    plan.pdl = pdl;
    plan.tiles = candidate.clusters;
    plan.grid =
        (c.is_split() ? candidate.launched_clusters() : persistent_clusters(p, c, candidate, sm_count)) *
        plan.cluster;
    plan.predicted_us = prediction.us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// A row of tuned.def: the candidate for these n and k, and `m_above` < m <= `m_max`, without batch, both
// operands contiguous along K.
struct Tuned {
    int64_t n, k, m_above, m_max;
    int kernel;
    bool swap_ab;
    int split;
    bool stream_k;
    Pdl pdl;
};

constexpr Pdl Late = Pdl::Late, Early = Pdl::Early, Off = Pdl::Off;

#define TUNED(n, k, m_above, m_max, name, swap_ab, split, stream_k, pdl, us, model)                        \
    {n, k, m_above, m_max, kernel_named(#name), swap_ab != 0, split, stream_k != 0, pdl},
constexpr Tuned tuned_h200[] = {
#include "arch/sm90/choose/h200/tuned.def"
};
constexpr Tuned tuned_h100[] = {
#include "arch/sm90/choose/h100/tuned.def"
};
#undef TUNED

std::span<const Tuned> tuned_on(Card card)
{
    return card == Card::H100 ? std::span<const Tuned>(tuned_h100) : tuned_h200;
}

// A row also serves the transposed problem, with m and n swapped and swap_ab inverted: unless K is so small
// that it matters along which dimension D is written.
bool choose_tuned(const Facts& f, const Device& device, const Options& o, Plan& plan)
{
    const Problem& p = f.problem;
    if (KernelFactors(device, kernels).are_measured() || p.batch > 1 || o.sm_limit > 0 ||
        device.sm_count != max_remapped_clusters || *o.kernel || f.a.major != Major::K ||
        f.b.major != Major::K)
        return false;
    for (const bool mirrored : {false, true})
        for (const Tuned& t : tuned_on(card_of(device))) {
            const int64_t m = mirrored ? p.n : p.m, n = mirrored ? p.m : p.n;
            if (n != t.n || p.k != t.k || m <= t.m_above || m > t.m_max ||
                (mirrored && p.k <= row_order_k_max))
                continue;
            const bool swap_ab = t.swap_ab != mirrored;
            const int64_t clusters = count_clusters(p, configs[t.kernel], swap_ab);
            const bool pdl_off = (o.pdl == Pdl::Free ? t.pdl : o.pdl) == Pdl::Off;
            const Candidate candidate{t.kernel, swap_ab, t.split, t.stream_k, clusters, pdl_off};
            if (!is_legal(f, candidate, o, device.sm_count))
                continue;
            fill(p, candidate, {predict(f, candidate, device.sm_count).us, t.pdl}, device.sm_count, o,
                 plan);
            plan.why = Why::Tuned;
            return true;
        }
    return false;
}

// The network is asked about candidates within 1.3 times the model's best, which are those that it was
// fitted to. EXPERIMENTS.md#model-and-network has what 1.5 times would change.
bool choose_by_model(const Facts& f, const Device& device, const Options& o, Plan& plan)
{
    const Problem& p = f.problem;
    const int sm_count = o.sm_count(device);
    const KernelFactors factors(device, kernels);
    const bool corrected = !factors.are_measured() && has_correction(p, sm_count);
    const double slack = corrected ? 1.3 : 1.0;
    Contest contest(f, o, sm_count, factors);
    Choice best = contest.by_model(slack);
    if (best.prediction.us == no_choice.prediction.us)
        return false;
    // With copies, the time is compared with that of direct kernels, whose constants are an H200's.
    const Card card = plan.repacks() ? Card::H200 : card_of(device);
    const bool ask =
        corrected && best.candidate.split <= few_slices && best.prediction.us < max_corrected_us(card);
    if (ask)
        best = contest.by_network(card, slack * best.prediction.us);
    fill(p, best.candidate, best.prediction, sm_count, o, plan);
    if (ask && plan.why == Why::Model)
        plan.why = Why::Network;
    return true;
}

// Adds the partial sums and the counters that CTAs share to plan.workspace. The counters lie behind the
// workspace, but they count too: a plan that uses the workspace is not launched on two streams at a time.
void reserve_workspace(const Problem& p, const Options& o, int sm_count, Plan& plan)
{
    const Config& c = configs[plan.kernel];
    const int64_t clusters = plan.grid / c.ctas(), k_tiles = ceil_div(p.k, tile_k);
    const int64_t stream_tiles = plan.sm90.stream_k ? stream_shape(c, plan.tiles, p.k, sm_count).tiles : 0;
    plan.sm90.dynamic_schedule = o.counters > 0 && o.workspace >= sizeof(uint32_t) &&
                                 schedules_dynamically(c, plan.tiles - stream_tiles, clusters, k_tiles);
    plan.counts = plan.sm90.stream_k || plan.sm90.dynamic_schedule || (c.is_global() && plan.split > 1);
    if (plan.sm90.stream_k)
        plan.workspace += static_cast<size_t>(stream_k_bytes(c, clusters));
    else if (plan.sm90.dynamic_schedule)
        plan.workspace += sizeof(uint32_t);
    else
        plan.workspace +=
            static_cast<size_t>(global_partial_words(c, plan.tiles, plan.split)) * sizeof(uint32_t);
}

}  // namespace

bool choose_gemm(const Facts& asked, const Device& device, const Options& o, Plan& plan)
{
    Options options = o;
    if (const char* why_not = refusal(asked.problem)) {
        plan.refusal = why_not;
        return false;
    }
    if (!plan_repack(asked, readable, options.workspace, plan)) {
        plan.refusal =
            "TMA cannot address A or B: one contiguous dimension and 16-byte alignment are needed, or "
            "workspace for a copy";
        return false;
    }
    options.workspace -= plan.workspace;
    const Problem p = repacked(asked.problem, plan, nullptr);
    const Facts facts = plan.repacks() ? Facts(p) : asked;
    if (!choose_tuned(facts, device, options, plan) && !choose_by_model(facts, device, options, plan)) {
        plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
        return false;
    }
    plan.predicted_us += predict_repack(asked.problem, plan, KernelFactors(device, kernels)[plan.kernel]);
    reserve_workspace(p, options, o.sm_count(device), plan);
    decide_details(facts, o.sm_count(device), plan);
    const Mma mma(p, plan.swap_ab);
    plan.variant = entry_of(plan.kernel, major_variant(p.type_ab, mma.a, mma.b));
    return true;
}

size_t counter_words(const Device& device, size_t workspace)
{
    constexpr size_t min_words = 4096;
    const size_t tiles = static_cast<size_t>(device.sm_count) * 128 * 128;
    return min_words + std::min(workspace / 4 / sizeof(uint32_t), tiles);
}

double predict_plan(const Problem& p, const Device& device, const Plan& plan, int sm_count)
{
    const Facts facts(p);
    if (is_direct(plan.kernel))
        return predict_direct_plan(facts, device, plan, sm_count);
    const Candidate candidate{plan.kernel,        plan.swap_ab, plan.split,
                              plan.sm90.stream_k, plan.tiles,   !plan.uses_pdl()};
    return predict(facts, candidate, sm_count, KernelFactors(device, kernels)[plan.kernel]).us;
}

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    if (p.is_gated())
        return choose_gated(p, device, options, plan);
    if (p.is_grouped())
        return choose_groups(p, device, options, plan);
    if (p.triangle != Triangle::Whole)
        return choose_triangle(p, device, options, plan);
    if (p.leaves > 1)
        return choose_tree(p, device, options, plan);
    const Facts facts(p);
    if (!*options.kernel && prefers_gemv(facts) &&
        choose_direct(facts, device, options, DirectFamily::Gemv, plan))
        return true;
    Plan direct = plan;
    const bool found = choose_gemm(facts, device, options, plan);
    if (found && !plan.repacks())
        return true;
    if (!choose_direct(facts, device, options, DirectFamily::Direct, direct) ||
        (found && plan.predicted_us <= direct.predicted_us))
        return found;
    plan = direct;
    return true;
}

}  // namespace hg::sm90
