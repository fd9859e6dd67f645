// Problem x Device -> row, orientation and split: legality, then a cost model.
#include "arch/common/pack.hpp"
#include "arch/sm90/model.hpp"
#include "arch/sm90/repack.hpp"
#include "arch/sm90/rows.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Tensor maps have 32-bit coordinates; a tile may start before the end and reach past it.
constexpr int64_t max_extent = INT32_MAX - 1024;

const char* refusal(const Problem& p)
{
    if (p.k == 0)
        return "k is 0";
    if (std::max({p.m, p.n, p.k, p.batch}) > max_extent)
        return "a size is 2^31 or more";
    return nullptr;
}

// One way to run a problem.
struct Candidate {
    int row;
    bool swapped;
    int split;
};

int64_t count_clusters(const Problem& p, const Config& c, bool swapped)
{
    const int64_t along_x = swapped ? p.n : p.m, along_y = swapped ? p.m : p.n;
    int64_t tiles;
    const bool overflow =
        __builtin_mul_overflow(ceil_div(along_x, c.x * c.cluster), ceil_div(along_y, c.y), &tiles) ||
        __builtin_mul_overflow(tiles, p.batch, &tiles);
    return overflow || tiles > max_tiles ? max_tiles + 1 : tiles;
}

bool is_allowed(const Problem& p, const Candidate& way, const Options& o, int64_t tiles, int sm_count)
{
    const Config& c = configs[way.row];
    if (tiles > max_tiles || is_forced_away(o, rows[way.row]))
        return false;
    const auto orientation = way.swapped ? Orientation::Swapped : Orientation::Plain;
    if ((o.split > 0 && o.split != way.split) ||
        (o.orientation != Orientation::Free && o.orientation != orientation))
        return false;
    if (!c.is_split())
        return way.split == 1 && sm_count >= c.cluster;
    if (o.mode == Mode::BatchInvariant && way.split > 1)
        return false;
    if (way.split * c.cluster > max_cluster)
        return false;
    // Without persistence a limit of multiprocessors holds only for few enough CTAs.
    return way.split <= std::max(int64_t{1}, ceil_div(p.k, tile_k)) &&
           (o.sm_limit == 0 || tiles * way.split * c.cluster <= sm_count);
}

void fill(const Candidate& way, int64_t tiles, int sm_count, const Options& o, double us, Plan& plan)
{
    const Config& c = configs[way.row];
    const int64_t clusters = std::max(1, sm_count / c.cluster);
    plan.row = way.row;
    plan.swapped = way.swapped;
    plan.split = way.split;
    plan.cluster = c.cluster * way.split;
    plan.overlaps = !o.alone;
    plan.tiles = tiles;
    // No more CTAs than keep the number of waves: less power.
    plan.grid = c.is_split() ? tiles * plan.cluster : ceil_div(tiles, ceil_div(tiles, clusters)) * c.cluster;
    plan.predicted_us = us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

}  // namespace

bool choose(const Problem& asked, const Device& device, const Options& options, Plan& plan)
{
    if (const char* why_not = refusal(asked)) {
        plan.refusal = why_not;
        return false;
    }
    if (!plan_repack(asked, options.workspace, plan)) {
        plan.refusal = "TMA cannot address A or B: contiguous lines and 16-byte alignment are needed, or "
                       "workspace for a copy";
        return false;
    }
    const Problem p = repacked(asked, plan, nullptr);
    const int sm_count =
        options.sm_limit > 0 ? std::min(options.sm_limit, device.sm_count) : device.sm_count;
    bool found = false;
    for (int row = 0; row < row_count; ++row)
        for (const bool swapped : {false, true}) {
            const int64_t tiles = count_clusters(p, configs[row], swapped);
            for (int split = 1; split <= max_cluster; ++split) {
                const Candidate way{row, swapped, split};
                if (!is_allowed(p, way, options, tiles, sm_count))
                    continue;
                const double us = predict(p, configs[row], swapped, split, tiles, sm_count);
                if (found && us >= plan.predicted_us)
                    continue;
                found = true;
                fill(way, tiles, sm_count, options, us, plan);
            }
        }
    if (!found) {
        plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
        return false;
    }
    plan.predicted_us += predict_repack(plan);
    const Operand &x = plan.swapped ? p.b : p.a, &y = plan.swapped ? p.a : p.b;
    plan.variant = major_variant(p.type_ab, x, y);
    return true;
}

}  // namespace hg::sm90
