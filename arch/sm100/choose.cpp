// Chooses kernel, swap_ab and split: legality, then measured exceptions, then a cost model.
#include "arch/sm100/choose.hpp"

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/sm100/kernels.hpp"
#include "arch/sm100/model.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

namespace hg::sm100 {
namespace {

constexpr Offered offered{.split = true, .swap_ab = true, .stream_k = false, .pdl = Pdl::Late};

const char* refusal(const Problem& p, const Options& o)
{
    if (p.k == 0)
        return "k is 0";
    const char* const why_not = tma_refusal(p);
    return why_not ? why_not : not_offered(o, offered);
}

int64_t count_clusters(const Problem& p, const Config& c, bool swap_ab)
{
    return count_tiles(p, c.tile_m, c.tile_n, swap_ab);
}

bool is_legal(const Problem& p, const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    const auto swap_ab = candidate.swap_ab ? SwapAb::On : SwapAb::Off;
    if (is_forced_away(o, kernels[candidate.kernel]) || (o.split > 0 && o.split != candidate.split) ||
        (o.swap_ab != SwapAb::Free && o.swap_ab != swap_ab))
        return false;
    if (candidate.clusters > max_tiles || sm_count < c.cta_group ||
        !o.takes_cluster(c.cta_group * candidate.split))
        return false;
    if (candidate.split > 1 && (!c.is_split() || o.mode == Mode::BatchInvariant ||
                                candidate.split > sm_count || candidate.split > ceil_div(p.k, tile_k)))
        return false;
    // Unless the schedule is static, the grid has a CTA for each tile: no more than a launch takes, and a
    // limit of SMs holds only if they are as few.
    const int64_t ctas = candidate.clusters * c.cta_group * candidate.split;
    return c.schedule == Schedule::Static || (ctas <= INT32_MAX && (o.sm_limit == 0 || ctas <= sm_count));
}

void write_plan(const Candidate& candidate, double predicted_us, int sm_count, const Options& o, Plan& plan)
{
    const Config& c = configs[candidate.kernel];
    const int64_t resident = sm_count / c.cta_group;
    plan.kernel = candidate.kernel;
    plan.variant = 0;
    plan.swap_ab = candidate.swap_ab;
    plan.split = candidate.split;
    plan.cluster = c.cta_group * candidate.split;
    plan.pdl = o.pdl == Pdl::Off ? Pdl::Off : Pdl::Late;
    plan.tiles = candidate.clusters;
    // Static: the fewest CTAs with which the number of waves stays the same, for less power.
    plan.grid = plan.cluster * (c.schedule == Schedule::Static
                                    ? ceil_div(candidate.clusters, ceil_div(candidate.clusters, resident))
                                    : candidate.clusters);
    plan.predicted_us = predicted_us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// A row of tuned.def: the candidate for these n and k, and `m_above` < m <= `m_max`, without batch, both
// operands contiguous along K.
struct Tuned {
    int64_t n, k, m_above, m_max;
    std::string_view kernel;
    bool swap_ab;
    int split;
};

#define TUNED(n, k, m_above, m_max, name, swap_ab, split)                                                  \
    {n, k, m_above, m_max, #name, swap_ab != 0, split},
constexpr Tuned tuned[] = {
#include "arch/sm100/tuned.def"
    {},  // the end
};
#undef TUNED

const Tuned* find_tuned(const Problem& p, const Device& device, const Options& o)
{
    if (KernelFactors(device, kernels).are_measured() || p.batch > 1 || o.sm_limit > 0 || *o.kernel ||
        major_of(p.a) != Major::K || major_of(p.b) != Major::K)
        return nullptr;
    for (const Tuned& t : tuned)
        if (p.n == t.n && p.k == t.k && p.m > t.m_above && p.m <= t.m_max)
            return &t;
    return nullptr;
}

// The candidate of tuned.def, if it is legal, else the best one by the model.
bool choose_candidate(const Problem& p, const Device& device, const Options& o, int sm_count, Plan& plan)
{
    const Tuned* measured = find_tuned(p, device, o);
    bool found = false;
    for (int kernel = 0; kernel < kernel_count; ++kernel)
        for (const bool swap_ab : {false, true}) {
            const int64_t clusters = count_clusters(p, configs[kernel], swap_ab);
            for (int split = 1; split <= max_slices; ++split) {
                const Candidate candidate{kernel, swap_ab, split, clusters};
                if (!is_legal(p, candidate, o, sm_count))
                    continue;
                const double limit =
                    found && !measured ? plan.predicted_us : std::numeric_limits<double>::infinity();
                const double us = predict_candidate(p, device, candidate, sm_count, limit);
                const bool best = measured && measured->kernel == kernels[kernel].name &&
                                  measured->swap_ab == swap_ab && measured->split == split;
                if (found && us >= plan.predicted_us && !best)
                    continue;
                found = true;
                write_plan(candidate, us, sm_count, o, plan);
                if (best) {
                    plan.why = Why::Tuned;
                    return true;
                }
            }
        }
    return found;
}

}  // namespace

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    plan.refusal = refusal(p, options);
    if (plan.refusal)
        return false;
    if (choose_candidate(p, device, options, options.sm_count(device), plan))
        return true;
    plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    return false;
}

}  // namespace hg::sm100
