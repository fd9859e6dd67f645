// Problem x Device -> row, orientation and split: legality, then measured exceptions, then a cost model.
#include "arch/common/settings.hpp"
#include "arch/common/tma.hpp"
#include "arch/sm100/model.hpp"
#include "arch/sm100/rows.hpp"

#include <algorithm>
#include <string_view>

namespace hg::sm100 {
namespace {

constexpr Offered offered{.split = true, .swapped = true, .stream = false, .overlap = hg::Overlap::Late};

const char* refusal(const Problem& p, const Options& o)
{
    if (p.k == 0)
        return "k is 0";
    if (std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return "a size is 2^31 or more";
    if (!is_tma_operand(p.a, p.batch) || !is_tma_operand(p.b, p.batch))
        return "TMA cannot address A or B: contiguous lines and 16-byte alignment are needed";
    return not_offered(o, offered);
}

int64_t count_clusters(const Problem& p, const Config& c, bool swapped)
{
    return count_tiles(p, c.x, c.y, swapped);
}

bool is_allowed(const Problem& p, const Way& way, const Options& o, int sm_count)
{
    const Config& c = configs[way.row];
    const auto orientation = way.swapped ? Orientation::Swapped : Orientation::Plain;
    if (is_forced_away(o, rows[way.row]) || (o.split > 0 && o.split != way.split) ||
        (o.orientation != Orientation::Free && o.orientation != orientation))
        return false;
    if (way.clusters > max_tiles || sm_count < c.group)
        return false;
    if (way.split > 1 && (!c.is_split() || o.mode == Mode::BatchInvariant || way.split > sm_count ||
                          way.split > ceil_div(p.k, tile_k)))
        return false;
    // Unless it is static the grid has a CTA for each tile: within what a launch takes, and a limit of
    // multiprocessors holds only for few enough.
    const int64_t ctas = way.clusters * c.group * way.split;
    return c.schedule == Schedule::Static || (ctas <= INT32_MAX && (o.sm_limit == 0 || ctas <= sm_count));
}

void fill(const Way& way, double predicted_us, int sm_count, const Options& o, Plan& plan)
{
    const Config& c = configs[way.row];
    const int64_t at_once = sm_count / c.group;
    plan.row = way.row;
    plan.variant = 0;
    plan.swapped = way.swapped;
    plan.split = way.split;
    plan.cluster = c.group * way.split;
    plan.overlaps = o.overlap != hg::Overlap::None;
    plan.tiles = way.clusters;
    // No more CTAs of a static one than keep the number of waves: less power.
    plan.grid = plan.cluster * (c.schedule == Schedule::Static
                                    ? ceil_div(way.clusters, ceil_div(way.clusters, at_once))
                                    : way.clusters);
    plan.predicted_us = predicted_us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// What measurements say of a product without batch, both operands contiguous along k.
struct Tuned {
    int64_t n, k, over, m;
    std::string_view row;
    bool swapped;
    int split;
};

constexpr bool Plain = false, Swapped = true;

#define TUNED(n, k, over, m, name, orientation, split) {n, k, over, m, #name, orientation, split},
constexpr Tuned tuned[] = {
#include "arch/sm100/tuned.def"
    {},  // the end
};
#undef TUNED

const Tuned* find_tuned(const Problem& p, const Options& o)
{
    if (p.batch > 1 || o.sm_limit > 0 || *o.kernel || major_of(p.a) != Major::K ||
        major_of(p.b) != Major::K)
        return nullptr;
    for (const Tuned& t : tuned)
        if (p.n == t.n && p.k == t.k && p.m > t.over && p.m <= t.m)
            return &t;
    return nullptr;
}

// What was measured to be best, if it is allowed, else what the model says.
bool choose_way(const Problem& p, const Options& o, int sm_count, Plan& plan)
{
    const Tuned* measured = find_tuned(p, o);
    bool found = false;
    for (int row = 0; row < row_count; ++row)
        for (const bool swapped : {false, true}) {
            const int64_t clusters = count_clusters(p, configs[row], swapped);
            for (int split = 1; split <= max_split; ++split) {
                const Way way{row, swapped, split, clusters};
                if (!is_allowed(p, way, o, sm_count))
                    continue;
                const double us = predict(p, configs[row], way, sm_count);
                const bool best = measured && measured->row == rows[row].name &&
                                  measured->swapped == swapped && measured->split == split;
                if (found && us >= plan.predicted_us && !best)
                    continue;
                found = true;
                fill(way, us, sm_count, o, plan);
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
    if (choose_way(p, options, options.sm_count(device), plan))
        return true;
    plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    return false;
}

}  // namespace hg::sm100
