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

const char* refusal(const Problem& p)
{
    if (p.k == 0)
        return "k is 0";
    if (std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return "a size is 2^31 or more";
    return nullptr;
}

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

// Slices that wait for each other run side by side.
bool can_reduce_globally(const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    if (candidate.split == 1)
        return true;
    const int64_t partial_words = global_partial_words(c, candidate.clusters, candidate.split);
    return candidate.launched_clusters() <= clusters_held(c.ctas_per_sm, c.ctas(), sm_count) &&
           static_cast<size_t>(arrival_words(c, candidate.clusters) + partial_words) <= o.counters &&
           static_cast<size_t>(partial_words) * sizeof(uint32_t) <= o.workspace;
}

// Is it known where its tiles will be, if it starts on an idle device?
bool can_be_placed(const Config& c, const Candidate& candidate, int sm_count)
{
    return c.is_split() &&
           can_place(c, c.cluster_ctas(candidate.split), candidate.launched_clusters(), sm_count);
}

constexpr int max_slices_of(const Config& c) { return c.is_global() ? max_slices : max_cluster; }

// A bit for each number of slices that a kernel's tiles can be cut into.
constexpr auto legal_splits = [] {
    std::array<uint32_t, gemm_count> bits{};
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        for (int split = 1; split <= max_slices_of(configs[kernel]); ++split)
            bits[kernel] |= can_split(configs[kernel], split) ? 1u << split : 0u;
    return bits;
}();

// `o.workspace` is what copies of operands leave.
bool is_legal(const Problem& p, const Candidate& candidate, const Options& o, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    if (!(legal_splits[candidate.kernel] >> candidate.split & 1) || candidate.clusters > max_tiles ||
        is_forced_away(o, kernels[candidate.kernel]))
        return false;
    if (c.is_split() && candidate.launched_clusters() * c.cluster_ctas(candidate.split) > INT32_MAX)
        return false;
    if (o.pdl == Pdl::Free ? candidate.pdl_off && !can_be_placed(c, candidate, sm_count)
                           : candidate.pdl_off != (o.pdl == Pdl::Off))
        return false;
    const auto swap_ab = candidate.swap_ab ? SwapAb::On : SwapAb::Off;
    if ((o.split > 0 && o.split != candidate.split) || (o.swap_ab != SwapAb::Free && o.swap_ab != swap_ab))
        return false;
    if (o.stream_k != StreamK::Free && (o.stream_k == StreamK::On) != candidate.stream_k)
        return false;
    if (!can_store(c, p, candidate.swap_ab))
        return false;
    if (!c.is_split())
        return sm_count >= c.ctas() && (!candidate.stream_k || can_stream_k(p, candidate, o, sm_count));
    if (candidate.stream_k || (o.mode == Mode::BatchInvariant && candidate.split > 1))
        return false;
    if (candidate.split * c.ctas() > sm_count * c.ctas_per_sm ||
        (c.is_global() && !can_reduce_globally(candidate, o, sm_count)))
        return false;
    // Without persistence a limit of SMs holds only for few enough CTAs.
    return candidate.split <= std::max(int64_t{1}, ceil_div(p.k, tile_k)) &&
           (o.sm_limit == 0 || candidate.clusters * candidate.split * c.ctas() <= sm_count);
}

// No more persistent CTAs than keep the number of waves: less power.
int64_t persistent_clusters(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    const int64_t at_once = clusters_held(c.ctas_per_sm, c.ctas(), sm_count);
    return candidate.stream_k ? stream_shape(c, candidate.clusters, p.k, sm_count).clusters
                              : ceil_div(candidate.clusters, ceil_div(candidate.clusters, at_once));
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

// What measurements say of a problem without batch, both operands contiguous along K.
struct Tuned {
    int64_t n, k, over, m;
    int kernel;
    bool swap_ab;
    int split;
    bool stream_k;
    Pdl pdl;
};

constexpr Pdl Late = Pdl::Late, Early = Pdl::Early, Off = Pdl::Off;

#define TUNED(n, k, over, m, name, swap_ab, split, stream_k, pdl, us, model)                               \
    {n, k, over, m, kernel_named(#name), swap_ab != 0, split, stream_k != 0, pdl},
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

// The same problem read as its transpose swaps m with n, and A with B: unless K is so small that it matters
// along which dimension D is written.
bool choose_tuned(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    if (p.batch > 1 || o.sm_limit > 0 || device.sm_count != max_remapped_clusters || *o.kernel ||
        major_of(p.a) != Major::K || major_of(p.b) != Major::K)
        return false;
    for (const bool mirrored : {false, true})
        for (const Tuned& t : tuned_on(card_of(device))) {
            const int64_t m = mirrored ? p.n : p.m, n = mirrored ? p.m : p.n;
            if (n != t.n || p.k != t.k || m <= t.over || m > t.m || (mirrored && p.k <= row_order_k_max))
                continue;
            const bool swap_ab = t.swap_ab != mirrored;
            const int64_t clusters = count_clusters(p, configs[t.kernel], swap_ab);
            const bool pdl_off = (o.pdl == Pdl::Free ? t.pdl : o.pdl) == Pdl::Off;
            const Candidate candidate{t.kernel, swap_ab, t.split, t.stream_k, clusters, pdl_off};
            if (!is_legal(p, candidate, o, device.sm_count))
                continue;
            fill(p, candidate, {predict(p, configs[t.kernel], candidate, device.sm_count).us, t.pdl},
                 device.sm_count, o, plan);
            plan.why = Why::Tuned;
            return true;
        }
    return false;
}

// Visits all candidates, legal or not, in an order that is always the same.
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

// What the model and the network are not asked about, unless it is forced: SplitKGlobal where the slices
// leave a quarter of the device idle, since clusters were faster wherever both were measured, and a single
// slice of it, which was measured for few problems; four CTAs an SM with tile N of 32 and more, which were
// measured for batches alone.
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

constexpr Choice none{{}, {std::numeric_limits<double>::infinity(), Pdl::Free}};

// With what it takes to store tiles element by element, which no measurement that the network knows did:
// 1024^3 by 64 x 128, which one consumer stores, 12.8 us, by 128 x 64, which two do, 10.8. Nothing hides
// many waves of them: 500000 x 2 x 64 by 64 x 256 takes 113 us.
double add_element_stores(double us, const Config& c, const Candidate& candidate, int sm_count)
{
    constexpr double element = 0.06;  // of a thread
    const int consumers = c.schedule == Schedule::PingPong ? 1 : c.consumers;
    const double tile = element * c.tile_m * c.tile_n / (128.0 * consumers * candidate.split);
    return std::max(us + tile, place(c, candidate, sm_count).waves * tile);
}

// The best candidate by the model. `predicted` gets the predictions, in the order of the candidates:
// infinite where one is not legal, and too low, but above the limit, where it takes more than `slack` times
// as long as the best.
Choice choose_predicted(const Problem& p, const Options& o, int sm_count, double slack, float* predicted)
{
    // predict() knows of those of low-intensity batches.
    const bool by_element = is_element_output(p) && !is_low_intensity_batch(p);
    Choice best = none;
    for_each_candidate(p, [&](const Candidate& candidate) {
        if (!is_worth_trying(p, candidate, o, sm_count) || !is_legal(p, candidate, o, sm_count)) {
            *predicted++ = std::numeric_limits<float>::infinity();
            return;
        }
        Prediction prediction =
            predict(p, configs[candidate.kernel], candidate, sm_count, slack * best.prediction.us);
        *predicted++ = static_cast<float>(prediction.us);
        if (by_element)
            prediction.us =
                add_element_stores(prediction.us, configs[candidate.kernel], candidate, sm_count);
        if (prediction.us < best.prediction.us)
            best = {candidate, prediction};
    });
    return best;
}

// The best candidate by what was measured, of those that the model expects to take less than `limit`.
Choice choose_corrected(const Problem& p, const Options& o, int sm_count, Card card, double limit,
                        const float* predicted)
{
    const bool by_element = is_element_output(p);
    Choice best = none;
    for_each_candidate(p, [&](const Candidate& candidate) {
        const double us = *predicted++;
        if (us >= limit)
            return;
        const Config& c = configs[candidate.kernel];
        const Corrected corrected = corrected_us(p, c, candidate, us, sm_count, card);
        const bool late = candidate.pdl_off || !c.is_split() ? false
                          : o.pdl == Pdl::Free               ? corrected.late < corrected.early
                                                             : o.pdl == Pdl::Late;
        double time = late ? corrected.late : corrected.early;
        if (by_element)
            time = add_element_stores(time, c, candidate, sm_count);
        if (time < best.prediction.us)
            best = {candidate, {time, candidate.pdl_off ? Pdl::Off : late ? Pdl::Late : Pdl::Early}};
    });
    return best;
}

// The network is asked about candidates that the model does not find slower by half than the best: 99 of
// 100 problems have their fastest one among these.
bool choose_by_model(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    const int sm_count = o.sm_count(device);
    const bool corrected = has_correction(p, sm_count);
    const double slack = corrected ? 1.5 : 1.0;
    float predicted[max_candidates];
    Choice best = choose_predicted(p, o, sm_count, slack, predicted);
    if (best.prediction.us == none.prediction.us)
        return false;
    // Copies and direct kernels are compared by time, and theirs is known of H200s.
    const Card card = plan.sm90.repacks() ? Card::H200 : card_of(device);
    const bool ask = corrected && best.prediction.us < max_corrected_us(card);
    if (ask)
        best = choose_corrected(p, o, sm_count, card, slack * best.prediction.us, predicted);
    fill(p, best.candidate, best.prediction, sm_count, o, plan);
    if (ask && plan.why == Why::Model)
        plan.why = Why::Network;
    return true;
}

// What CTAs leave for each other: sums in the workspace; words beside it, which count as well, since a
// product on another stream must not use them.
void add_shared_memory(const Problem& p, const Options& o, int sm_count, Plan& plan)
{
    const Config& c = configs[plan.kernel];
    const int64_t clusters = plan.grid / c.ctas(), k_tiles = ceil_div(p.k, tile_k);
    const int64_t streamed = plan.sm90.stream_k ? stream_shape(c, plan.tiles, p.k, sm_count).tiles : 0;
    plan.sm90.dynamic_schedule = o.counters > 0 && o.workspace >= sizeof(uint32_t) &&
                                 schedules_dynamically(c, plan.tiles - streamed, clusters, k_tiles);
    if (plan.sm90.stream_k)
        plan.workspace += static_cast<size_t>(stream_k_bytes(c, clusters));
    else if (plan.sm90.dynamic_schedule)
        plan.workspace += sizeof(uint32_t);
    else
        plan.workspace +=
            static_cast<size_t>(global_partial_words(c, plan.tiles, plan.split)) * sizeof(uint32_t);
}

bool choose_product(const Problem& asked, const Device& device, const Options& o, Plan& plan)
{
    Options options = o;
    if (const char* why_not = refusal(asked)) {
        plan.refusal = why_not;
        return false;
    }
    if (!plan_repack(asked, options.workspace, plan)) {
        plan.refusal = "TMA cannot address A or B: contiguous lines and 16-byte alignment are needed, or "
                       "workspace for a copy";
        return false;
    }
    options.workspace -= plan.workspace;
    const Problem p = repacked(asked, plan, nullptr);
    if (!choose_tuned(p, device, options, plan) && !choose_by_model(p, device, options, plan)) {
        plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
        return false;
    }
    plan.predicted_us += predict_repack(asked, plan);
    add_shared_memory(p, options, o.sm_count(device), plan);
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

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    if (p.is_grouped())
        return choose_groups(p, device, options, plan);
    if (!*options.kernel && prefers_gemv(p) && choose_direct(p, device, options, DirectFamily::Gemv, plan))
        return true;
    Plan direct = plan;
    const bool found = choose_product(p, device, options, plan);
    if (found && !plan.sm90.repacks())
        return true;
    if (!choose_direct(p, device, options, DirectFamily::Direct, direct) ||
        (found && plan.predicted_us <= direct.predicted_us))
        return found;
    plan = direct;
    return true;
}

}  // namespace hg::sm90
