// Problem x Device -> row and orientation: legality, then measured exceptions, then a cost model.
#include "arch/common/tma.hpp"
#include "arch/sm100/model.hpp"
#include "arch/sm100/rows.hpp"

#include <algorithm>
#include <string_view>

namespace hg::sm100 {
namespace {

const char* refusal(const Problem& p)
{
    if (p.k == 0)
        return "k is 0";
    if (std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return "a size is 2^31 or more";
    if (!is_tma_operand(p.a, p.batch) || !is_tma_operand(p.b, p.batch))
        return "TMA cannot address A or B: contiguous lines and 16-byte alignment are needed";
    return nullptr;
}

int64_t count_clusters(const Problem& p, const Config& c, bool swapped)
{
    const int64_t along_x = swapped ? p.n : p.m, along_y = swapped ? p.m : p.n;
    int64_t tiles;
    const bool overflow = __builtin_mul_overflow(ceil_div(along_x, c.x), ceil_div(along_y, c.y), &tiles) ||
                          __builtin_mul_overflow(tiles, p.batch, &tiles);
    return overflow || tiles > max_tiles ? max_tiles + 1 : tiles;
}

bool is_allowed(const Way& way, const Options& o, int sm_count)
{
    const Config& c = configs[way.row];
    const auto orientation = way.swapped ? Orientation::Swapped : Orientation::Plain;
    if (is_forced_away(o, rows[way.row]) || o.split > 1 ||
        (o.orientation != Orientation::Free && o.orientation != orientation))
        return false;
    if (way.clusters > max_tiles || sm_count < c.group)
        return false;
    // The grid of a dynamic one has a CTA for each tile: within what a launch takes, and a limit of
    // multiprocessors holds only for few enough.
    const int64_t ctas = way.clusters * c.group;
    return c.schedule == Schedule::Static || (ctas <= INT32_MAX && (o.sm_limit == 0 || ctas <= sm_count));
}

void fill(const Way& way, double predicted_us, int sm_count, const Options& o, Plan& plan)
{
    const Config& c = configs[way.row];
    const int64_t at_once = sm_count / c.group;
    plan.row = way.row;
    plan.variant = 0;
    plan.swapped = way.swapped;
    plan.split = 1;
    plan.cluster = c.group;
    plan.overlaps = !o.alone;
    plan.tiles = way.clusters;
    // No more CTAs of a static one than keep the number of waves: less power.
    plan.grid = c.group * (c.schedule == Schedule::Dynamic
                               ? way.clusters
                               : ceil_div(way.clusters, ceil_div(way.clusters, at_once)));
    plan.predicted_us = predicted_us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// What measurements say of a product without batch, both operands contiguous along k.
struct Tuned {
    int64_t n, k, over, m;
    std::string_view row;
    bool swapped;
};

constexpr bool Plain = false, Swapped = true;

#define TUNED(n, k, over, m, name, orientation) {n, k, over, m, #name, orientation},
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

}  // namespace

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    if (const char* why_not = refusal(p)) {
        plan.refusal = why_not;
        return false;
    }
    const int sm_count =
        options.sm_limit > 0 ? std::min(options.sm_limit, device.sm_count) : device.sm_count;
    const Tuned* measured = find_tuned(p, options);
    bool found = false;
    for (int row = 0; row < row_count; ++row)
        for (const bool swapped : {false, true}) {
            const Way way{row, swapped, count_clusters(p, configs[row], swapped)};
            if (!is_allowed(way, options, sm_count))
                continue;
            const double us = predict(p, configs[row], way, sm_count);
            const bool best = measured && measured->row == rows[row].name && measured->swapped == swapped;
            if (found && us >= plan.predicted_us && !best)
                continue;
            found = true;
            fill(way, us, sm_count, options, plan);
            if (best) {
                plan.why = Why::Tuned;
                return true;
            }
        }
    if (!found)
        plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    return found;
}

}  // namespace hg::sm100
