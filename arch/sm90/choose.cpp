// Problem x Device -> row, orientation and split: legality, then measured exceptions, then a cost model,
// and what a network learned of how far that is off.
#include "arch/common/tma.hpp"
#include "arch/sm90/learned.hpp"
#include "arch/sm90/order.hpp"
#include "arch/sm90/repack.hpp"
#include "arch/sm90/rows.hpp"

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

int64_t count_clusters(const Problem& p, const Config& c, bool swapped)
{
    return count_tiles(p, c.x * c.cluster, c.y * c.across, swapped);
}

bool can_stream(const Problem& p, const Way& way, const Options& o, int sm_count)
{
    const Config& c = configs[way.row];
    const StreamShape shape = stream_shape(c, way.clusters, p.k, sm_count);
    const int64_t length = shape.tiles * ceil_div(p.k, tile_k);
    return o.mode != Mode::BatchInvariant && shape.tiles > 0 && shape.clusters > 1 &&
           length < INT32_MAX / shape.clusters &&
           static_cast<size_t>(streamed_words(c, shape.tiles)) < o.counters &&
           static_cast<size_t>(stream_bytes(c, shape.clusters)) <= o.workspace;
}

// Slices that wait for each other run side by side.
bool can_join(const Way& way, const Options& o, int sm_count)
{
    const Config& c = configs[way.row];
    if (way.split == 1)
        return true;
    const int64_t mail = mail_words(c, way.clusters, way.split);
    return way.launched() <= clusters_held(c.residents, c.ctas(), sm_count) &&
           static_cast<size_t>(arrival_words(c, way.clusters) + mail) <= o.counters &&
           static_cast<size_t>(mail) * sizeof(uint32_t) <= o.workspace;
}

// Is it known where its tiles will be, if it starts on an idle device?
bool can_be_placed(const Config& c, const Way& way, int sm_count)
{
    return c.is_split() && can_place(c, c.cluster_ctas(way.split), way.launched(), sm_count);
}

constexpr int most_slices(const Config& c) { return c.is_global() ? max_slices : max_cluster; }

// A bit for each number of slices that a row's tiles can be cut into.
constexpr auto legal_splits = [] {
    std::array<uint32_t, row_count> bits{};
    for (int row = 0; row < row_count; ++row)
        for (int split = 1; split <= most_slices(configs[row]); ++split)
            bits[row] |= can_split(configs[row], split) ? 1u << split : 0u;
    return bits;
}();

// `o.workspace` is what copies of operands leave.
bool is_allowed(const Problem& p, const Way& way, const Options& o, int sm_count)
{
    const Config& c = configs[way.row];
    if (!(legal_splits[way.row] >> way.split & 1) || way.clusters > max_tiles ||
        is_forced_away(o, rows[way.row]))
        return false;
    if (c.is_split() && way.launched() * c.cluster_ctas(way.split) > INT32_MAX)
        return false;
    if (o.overlap == Overlap::Free ? way.alone && !can_be_placed(c, way, sm_count)
                                   : way.alone != (o.overlap == Overlap::None))
        return false;
    const auto orientation = way.swapped ? Orientation::Swapped : Orientation::Plain;
    if ((o.split > 0 && o.split != way.split) ||
        (o.orientation != Orientation::Free && o.orientation != orientation))
        return false;
    if (o.sharing != Sharing::Free && (o.sharing == Sharing::Stream) != way.streams)
        return false;
    if (!can_store(c, p, way.swapped))
        return false;
    if (!c.is_split())
        return sm_count >= c.ctas() && (!way.streams || can_stream(p, way, o, sm_count));
    if (way.streams || (o.mode == Mode::BatchInvariant && way.split > 1))
        return false;
    if (way.split * c.ctas() > sm_count * c.residents || (c.is_global() && !can_join(way, o, sm_count)))
        return false;
    // Without persistence a limit of multiprocessors holds only for few enough CTAs.
    return way.split <= std::max(int64_t{1}, ceil_div(p.k, tile_k)) &&
           (o.sm_limit == 0 || way.clusters * way.split * c.ctas() <= sm_count);
}

// No more persistent CTAs than keep the number of waves: less power.
int64_t persistent_clusters(const Problem& p, const Config& c, const Way& way, int sm_count)
{
    const int64_t at_once = clusters_held(c.residents, c.ctas(), sm_count);
    return way.streams ? stream_shape(c, way.clusters, p.k, sm_count).clusters
                       : ceil_div(way.clusters, ceil_div(way.clusters, at_once));
}

void fill(const Problem& p, const Way& way, const Prediction& prediction, int sm_count, const Options& o,
          Plan& plan)
{
    const Config& c = configs[way.row];
    plan.row = way.row;
    plan.swapped = way.swapped;
    plan.split = way.split;
    plan.streams = way.streams;
    plan.cluster = c.cluster_ctas(way.split);
    const Overlap overlap = o.overlap == Overlap::Free ? prediction.overlap : o.overlap;
    plan.overlaps = overlap != Overlap::None;
    plan.early = overlap == Overlap::Early;
    plan.tiles = way.clusters;
    plan.grid = (c.is_split() ? way.launched() : persistent_clusters(p, c, way, sm_count)) * plan.cluster;
    plan.predicted_us = prediction.us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// What measurements say of a product without batch, both operands contiguous along k.
struct Tuned {
    int64_t n, k, over, m;
    const Row* row;
    Orientation orientation;
    int split;
    bool streams;
    Overlap overlap;
};

constexpr bool Stream = true, Whole = false;
constexpr Overlap Late = Overlap::Late, Early = Overlap::Early, Alone = Overlap::None;
constexpr Orientation Plain = Orientation::Plain, Swapped = Orientation::Swapped;

consteval const Row* row_named(std::string_view name)
{
    for (const Row& row : rows)
        if (name == row.name)
            return &row;
    throw "tuned.def names an unknown kernel";
}

#define TUNED(n, k, over, m, name, orientation, split, streams, overlap, us, model)                        \
    {n, k, over, m, row_named(#name), orientation, split, streams, overlap},
constexpr Tuned tuned_h200[] = {
#include "arch/sm90/tuned.def"
};
constexpr Tuned tuned_h100[] = {
#include "arch/sm90/tuned_h100.def"
};
#undef TUNED

std::span<const Tuned> tuned_on(Card card)
{
    return card == Card::H100 ? std::span<const Tuned>(tuned_h100) : tuned_h200;
}

// The same product read as its transpose swaps m with n, and the orientation: unless k is so small that it
// matters along which dimension D is written.
bool choose_tuned(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    if (p.batch > 1 || o.sm_limit > 0 || device.sm_count != max_numbers || *o.kernel ||
        major_of(p.a) != Major::K || major_of(p.b) != Major::K)
        return false;
    for (const bool mirrored : {false, true})
        for (const Tuned& t : tuned_on(card_of(device))) {
            const int64_t m = mirrored ? p.n : p.m, n = mirrored ? p.m : p.n;
            if (n != t.n || p.k != t.k || m <= t.over || m > t.m || (mirrored && p.k <= writes_much))
                continue;
            const bool swapped = (t.orientation == Swapped) != mirrored;
            const auto row = static_cast<int>(t.row - rows);
            const int64_t clusters = count_clusters(p, configs[row], swapped);
            const bool alone = (o.overlap == Overlap::Free ? t.overlap : o.overlap) == Overlap::None;
            const Way way{row, swapped, t.split, t.streams, clusters, alone};
            if (!is_allowed(p, way, o, device.sm_count))
                continue;
            fill(p, way, {predict(p, configs[row], way, device.sm_count).us, t.overlap}, device.sm_count, o,
                 plan);
            plan.why = Why::Tuned;
            return true;
        }
    return false;
}

// Visits all ways, allowed or not, in an order that is always the same.
template <typename Visit>
void for_each_way(const Problem& p, Visit visit)
{
    for (int row = 0; row < row_count; ++row)
        for (const bool swapped : {false, true}) {
            const int64_t clusters = count_clusters(p, configs[row], swapped);
            for (const bool alone : {false, true}) {
                for (int split = 1; split <= most_slices(configs[row]); ++split)
                    visit(Way{row, swapped, split, false, clusters, alone});
                visit(Way{row, swapped, 1, true, clusters, alone});
            }
        }
}

constexpr int most_ways = row_count * 2 * 2 * (max_slices + 1);

// What the model and the network are not asked about, unless it was asked for: slices that meet in global
// memory where they leave a quarter of the device idle, since clusters were faster wherever both were
// measured, and a single slice, which was measured for few products; tiles of 32 y and more four a
// multiprocessor, which were measured for batches alone.
bool is_considered(const Problem& p, const Way& way, const Options& o, int sm_count)
{
    const Config& c = configs[way.row];
    if (*o.kernel)
        return true;
    if (c.residents == 4 && c.y >= 32 && !is_light_batch(p))
        return false;
    return !c.is_global() || (way.split > 1 && 4 * way.launched() * c.ctas() >= 3 * sm_count);
}

struct Choice {
    Way way;
    Prediction prediction;
};

constexpr Choice none{{}, {std::numeric_limits<double>::infinity(), Overlap::Free}};

// With what it takes to store tiles element by element, which no measurement that the network knows did:
// 1024^3 by 64 x 128, which one consumer stores, 12.8 us, by 128 x 64, which two do, 10.8. Nothing hides
// many waves of them: 500000 x 2 x 64 by 64 x 256 takes 113 us.
double add_element_stores(double us, const Config& c, const Way& way, int sm_count)
{
    constexpr double element = 0.06;  // of a thread
    const int consumers = c.kind == Kind::PingPong ? 1 : c.consumers;
    const double tile = element * c.x * c.y / (128.0 * consumers * way.split);
    return std::max(us + tile, place(c, way, sm_count).waves * tile);
}

// The best way that the model finds. `predicted` gets the predictions, in the order of the ways: infinite
// where a way is not allowed, and too low, but above the limit, where it takes more than `slack` times as
// long as the best.
Choice choose_predicted(const Problem& p, const Options& o, int sm_count, double slack, float* predicted)
{
    // predict() knows of those of light batches.
    const bool by_element = is_element_output(p) && !is_light_batch(p);
    Choice best = none;
    for_each_way(p, [&](const Way& way) {
        if (!is_considered(p, way, o, sm_count) || !is_allowed(p, way, o, sm_count)) {
            *predicted++ = std::numeric_limits<float>::infinity();
            return;
        }
        Prediction prediction = predict(p, configs[way.row], way, sm_count, slack * best.prediction.us);
        *predicted++ = static_cast<float>(prediction.us);
        if (by_element)
            prediction.us = add_element_stores(prediction.us, configs[way.row], way, sm_count);
        if (prediction.us < best.prediction.us)
            best = {way, prediction};
    });
    return best;
}

// The best way by what was measured, of those that the model expects to take less than `limit`.
Choice choose_learned(const Problem& p, const Options& o, int sm_count, Card card, double limit,
                      const float* predicted)
{
    const bool by_element = is_element_output(p);
    Choice best = none;
    for_each_way(p, [&](const Way& way) {
        const double us = *predicted++;
        if (us >= limit)
            return;
        const Config& c = configs[way.row];
        const Learned learned = learned_us(p, c, way, us, sm_count, card);
        const bool late = way.alone || !c.is_split()   ? false
                          : o.overlap == Overlap::Free ? learned.late < learned.early
                                                       : o.overlap == Overlap::Late;
        double time = late ? learned.late : learned.early;
        if (by_element)
            time = add_element_stores(time, c, way, sm_count);
        if (time < best.prediction.us)
            best = {way, {time, way.alone ? Overlap::None : late ? Overlap::Late : Overlap::Early}};
    });
    return best;
}

// The network is asked about ways that the model does not find slower by half than the best: 99 of 100
// products have their fastest one among these.
bool choose_by_model(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    const int sm_count = o.sm_count(device);
    const bool learned = is_learned(p, sm_count);
    const double slack = learned ? 1.5 : 1.0;
    float predicted[most_ways];
    Choice best = choose_predicted(p, o, sm_count, slack, predicted);
    if (best.prediction.us == none.prediction.us)
        return false;
    // Copies and direct kernels are compared by time, and theirs is known of H200s.
    const Card card = plan.repacks_a || plan.repacks_b ? Card::H200 : card_of(device);
    const bool ask = learned && best.prediction.us < longest_learned_us(card);
    if (ask)
        best = choose_learned(p, o, sm_count, card, slack * best.prediction.us, predicted);
    fill(p, best.way, best.prediction, sm_count, o, plan);
    if (ask && plan.why == Why::Model)
        plan.why = Why::Learned;
    return true;
}

// What CTAs leave for each other: sums in the workspace; words beside it, which count as well, since a
// product on another stream must not use them.
void add_shared_memory(const Problem& p, const Options& o, int sm_count, Plan& plan)
{
    const Config& c = configs[plan.row];
    const int64_t clusters = plan.grid / c.ctas(), k_tiles = ceil_div(p.k, tile_k);
    const int64_t streamed = plan.streams ? stream_shape(c, plan.tiles, p.k, sm_count).tiles : 0;
    plan.hands_out = o.counters > 0 && o.workspace >= sizeof(uint32_t) &&
                     hands_out_tiles(c, plan.tiles - streamed, clusters, k_tiles);
    if (plan.streams)
        plan.workspace += static_cast<size_t>(stream_bytes(c, clusters));
    else if (plan.hands_out)
        plan.workspace += sizeof(uint32_t);
    else
        plan.workspace += static_cast<size_t>(mail_words(c, plan.tiles, plan.split)) * sizeof(uint32_t);
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
    const Operand &x = plan.swapped ? p.b : p.a, &y = plan.swapped ? p.a : p.b;
    plan.variant = major_variant(p.type_ab, x, y);
    return true;
}

}  // namespace

size_t counter_words(const Device& device, size_t workspace)
{
    constexpr size_t least = 4096;
    const size_t tiles = static_cast<size_t>(device.sm_count) * 128 * 128;
    return least + std::min(workspace / 4 / sizeof(uint32_t), tiles);
}

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    if (p.is_grouped())
        return choose_groups(p, device, options, plan);
    if (!*options.kernel && is_for_lines(p) && choose_direct(p, device, options, DirectKind::Lines, plan))
        return true;
    Plan direct = plan;
    const bool found = choose_product(p, device, options, plan);
    if (found && !plan.repacks_a && !plan.repacks_b)
        return true;
    if (!choose_direct(p, device, options, DirectKind::Others, direct) ||
        (found && plan.predicted_us <= direct.predicted_us))
        return found;
    plan = direct;
    return true;
}

}  // namespace hg::sm90
