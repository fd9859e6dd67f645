#include "arch/sm90/choose/choose.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/choose/direct.hpp"
#include "arch/sm90/choose/grouped.hpp"
#include "arch/sm90/choose/model.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/choose/repack.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "arch/sm90/params.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>

namespace hg::sm90 {
namespace {

const char* refusal(const Problem& p) { return p.k == 0 ? "k is 0" : extent_refusal(p); }

int64_t count_clusters(const Problem& p, const Config& c, bool swap_ab)
{
    return count_tiles(p, c.tile_m * c.cluster_m, c.tile_n * c.cluster_n, swap_ab);
}

bool can_stream_k(const Problem& p, const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    const StreamShape shape = stream_shape(c, candidate.clusters, p.k, sm_count);
    const int64_t length = shape.tiles * ceil_div(p.k, tile_k);
    return o.mode != Mode::BatchInvariant && shape.tiles > 0 && shape.clusters > 1 &&
           length < INT32_MAX / shape.clusters &&
           static_cast<size_t>(stream_k_words(c, shape.tiles)) < o.counters &&
           static_cast<size_t>(stream_k_bytes(c, shape.clusters)) <= o.workspace;
}

// Slices wait for each other, so all of them must be resident at a time.
bool can_reduce_globally(const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    if (candidate.split == 1)
        return true;
    const int64_t partial_words = global_partial_words(c, candidate.clusters, candidate.split);
    return candidate.launched_clusters() <= resident_clusters(c.ctas_per_sm, c.ctas(), sm_count) &&
           static_cast<size_t>(arrival_words(c, candidate.clusters) + partial_words) <= o.counters &&
           static_cast<size_t>(partial_words) * sizeof(uint32_t) <= o.workspace;
}

// Can its tiles be placed by GPC if it starts on an idle device?
bool can_place_by_gpc(const Config& c, const Candidate& candidate, int sm_count)
{
    return c.is_split() &&
           fits_one_wave(c, c.cluster_ctas(candidate.split), candidate.launched_clusters(), sm_count);
}

constexpr int max_slices_of(const Config& c) { return c.is_global() ? max_slices : max_cluster; }

// Bit i of legal_splits[kernel]: the kernel can cut K into i slices.
constexpr auto legal_splits = [] {
    std::array<uint32_t, gemm_count> bits{};
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        for (int split = 1; split <= max_slices_of(configs[kernel]); ++split)
            bits[kernel] |= can_split(configs[kernel], split) ? 1u << split : 0u;
    return bits;
}();

// `o.workspace` is without the room for copies of operands.
bool is_legal(const Facts& f, const Candidate& candidate, const Options& o, int sm_count)
{
    const Problem& p = f.problem;
    const Config& c = configs[candidate.kernel];
    if (!(legal_splits[candidate.kernel] >> candidate.split & 1) || candidate.clusters > max_tiles ||
        is_forced_away(o, kernels[candidate.kernel]))
        return false;
    if (c.is_split() && candidate.launched_clusters() * c.cluster_ctas(candidate.split) > INT32_MAX)
        return false;
    if (o.pdl == Pdl::Free ? candidate.pdl_off && !can_place_by_gpc(c, candidate, sm_count)
                           : candidate.pdl_off != (o.pdl == Pdl::Off))
        return false;
    const auto swap_ab = candidate.swap_ab ? SwapAb::On : SwapAb::Off;
    if ((o.split > 0 && o.split != candidate.split) || (o.swap_ab != SwapAb::Free && o.swap_ab != swap_ab))
        return false;
    if (o.stream_k != StreamK::Free && (o.stream_k == StreamK::On) != candidate.stream_k)
        return false;
    if (!can_store(c, f, candidate.swap_ab))
        return false;
    if (!c.is_split())
        return sm_count >= c.ctas() && (!candidate.stream_k || can_stream_k(p, candidate, o, sm_count));
    if (candidate.stream_k || (o.mode == Mode::BatchInvariant && candidate.split > 1))
        return false;
    if (candidate.split * c.ctas() > sm_count * c.ctas_per_sm ||
        (c.is_global() && !can_reduce_globally(candidate, o, sm_count)))
        return false;
    // A split-K kernel launches all its CTAs at once: a limit of SMs holds only if they are as few.
    return candidate.split <= std::max(int64_t{1}, ceil_div(p.k, tile_k)) &&
           (o.sm_limit == 0 || candidate.clusters * candidate.split * c.ctas() <= sm_count);
}

// The fewest persistent CTAs with which the number of waves stays the same: less power.
int64_t persistent_clusters(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    const int64_t resident = resident_clusters(c.ctas_per_sm, c.ctas(), sm_count);
    return candidate.stream_k ? stream_shape(c, candidate.clusters, p.k, sm_count).clusters
                              : ceil_div(candidate.clusters, ceil_div(candidate.clusters, resident));
}

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
            fill(p, candidate, {predict(f, configs[t.kernel], candidate, device.sm_count).us, t.pdl},
                 device.sm_count, o, plan);
            plan.why = Why::Tuned;
            return true;
        }
    return false;
}

// Visits all candidates, legal or not, always in the same order.
template <typename Visit>
void for_each_candidate(const Problem& p, Visit visit)
{
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        for (const bool swap_ab : {false, true}) {
            const int64_t clusters = count_clusters(p, configs[kernel], swap_ab);
            for (const bool pdl_off : {false, true}) {
                for (int split = 1; split <= max_slices_of(configs[kernel]); ++split)
                    visit(Candidate{kernel, swap_ab, split, false, clusters, pdl_off});
                visit(Candidate{kernel, swap_ab, 1, true, clusters, pdl_off});
            }
        }
}

constexpr int max_candidates = gemm_count * 2 * 2 * (max_slices + 1);

// Not worth trying, unless forced: SplitKGlobal with slices that leave a quarter of the device idle (SplitK
// was faster wherever both were measured) or with one slice (measured for few problems); four CTAs an SM
// with tile N of 32 and more, except for low-intensity batches (not measured for others).
bool is_worth_trying(const Problem& p, const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    if (*o.kernel)
        return true;
    if (c.ctas_per_sm == 4 && c.tile_n >= 32 && !is_low_intensity_batch(p))
        return false;
    return !c.is_global() ||
           (candidate.split > 1 && 4 * candidate.launched_clusters() * c.ctas() >= 3 * sm_count);
}

struct Choice {
    Candidate candidate;
    Prediction prediction;
};

constexpr Choice no_choice{{}, {std::numeric_limits<double>::infinity(), Pdl::Free}};

// Adds the time of storing tiles element by element, which the networks have not seen. The more waves, the
// less of it is hidden. DESIGN.md#known-limits.
double add_element_stores(double us, const Config& c, const Candidate& candidate, int sm_count)
{
    constexpr double element_us = 0.06;  // of one thread
    const int consumers = c.schedule == Schedule::PingPong ? 1 : c.consumers;
    const double tile_us = element_us * c.tile_m * c.tile_n / (128.0 * consumers * candidate.split);
    return std::max(us + tile_us, occupancy_of(c, candidate, sm_count).waves * tile_us);
}

// The best candidate by the model. Fills `predicted` in the order of the candidates: infinity where one is
// not legal, and a lower bound, still above the limit, where one takes more than `slack` times as long as
// the best.
Choice choose_predicted(const Facts& f, const KernelFactors& factors, const Options& o, int sm_count,
                        double slack, float* predicted)
{
    const Problem& p = f.problem;
    // For low-intensity batches predict() has the time of such stores.
    const bool by_element = f.output.elements && !is_low_intensity_batch(p);
    Choice best = no_choice;
    for_each_candidate(p, [&](const Candidate& candidate) {
        if (!is_worth_trying(p, candidate, o, sm_count) || !is_legal(f, candidate, o, sm_count)) {
            *predicted++ = std::numeric_limits<float>::infinity();
            return;
        }
        Prediction prediction = predict(f, configs[candidate.kernel], candidate, sm_count,
                                        slack * best.prediction.us, factors[candidate.kernel]);
        *predicted++ = static_cast<float>(prediction.us);
        if (by_element)
            prediction.us =
                add_element_stores(prediction.us, configs[candidate.kernel], candidate, sm_count);
        if (prediction.us < best.prediction.us)
            best = {candidate, prediction};
    });
    return best;
}

// The best candidate by the network, of those that the model expects to take less than `limit`.
Choice choose_corrected(const Facts& f, const Options& o, int sm_count, Card card, double limit,
                        const float* predicted)
{
    const Problem& p = f.problem;
    const bool by_element = f.output.elements;
    Choice best = no_choice;
    for_each_candidate(p, [&](const Candidate& candidate) {
        const double predicted_us = *predicted++;
        if (predicted_us >= limit)
            return;
        const Config& c = configs[candidate.kernel];
        const Corrected corrected = corrected_us(p, c, candidate, predicted_us, sm_count, card);
        const bool late = candidate.pdl_off || !c.is_split() ? false
                          : o.pdl == Pdl::Free               ? corrected.late < corrected.early
                                                             : o.pdl == Pdl::Late;
        double us = late ? corrected.late : corrected.early;
        if (by_element)
            us = add_element_stores(us, c, candidate, sm_count);
        if (us < best.prediction.us)
            best = {candidate, {us, candidate.pdl_off ? Pdl::Off : late ? Pdl::Late : Pdl::Early}};
    });
    return best;
}

// The network is asked about candidates within 1.5 times the model's best: 99 of 100 problems have their
// fastest one among these.
bool choose_by_model(const Facts& f, const Device& device, const Options& o, Plan& plan)
{
    const Problem& p = f.problem;
    const int sm_count = o.sm_count(device);
    const KernelFactors factors(device, kernels);
    const bool corrected = !factors.are_measured() && has_correction(p, sm_count);
    const double slack = corrected ? 1.5 : 1.0;
    float predicted[max_candidates];
    Choice best = choose_predicted(f, factors, o, sm_count, slack, predicted);
    if (best.prediction.us == no_choice.prediction.us)
        return false;
    // With copies, the time is compared with that of direct kernels, whose constants are an H200's.
    const Card card = plan.repacks() ? Card::H200 : card_of(device);
    const bool ask = corrected && best.prediction.us < max_corrected_us(card);
    if (ask)
        best = choose_corrected(f, o, sm_count, card, slack * best.prediction.us, predicted);
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
    if (plan.sm90.stream_k)
        plan.workspace += static_cast<size_t>(stream_k_bytes(c, clusters));
    else if (plan.sm90.dynamic_schedule)
        plan.workspace += sizeof(uint32_t);
    else
        plan.workspace +=
            static_cast<size_t>(global_partial_words(c, plan.tiles, plan.split)) * sizeof(uint32_t);
}

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
    const Mma mma(p, plan.swap_ab);
    plan.variant = major_variant(p.type_ab, mma.a, mma.b);
    return true;
}

}  // namespace

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
    return predict(facts, config_of(plan.kernel), candidate, sm_count,
                   std::numeric_limits<double>::infinity(), KernelFactors(device, kernels)[plan.kernel])
        .us;
}

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    if (p.is_grouped())
        return choose_groups(p, device, options, plan);
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
