// Problem x Device -> a kernel that reads operands without TMA: legality, then a cost model.
#include "arch/sm90/direct.hpp"

#include "arch/common/tma.hpp"
#include "arch/sm90/model.hpp"
#include "arch/sm90/rows.hpp"

#include <algorithm>
#include <iterator>

namespace hg::sm90 {
namespace {

struct DirectWay {
    const DirectConfig& config;
    bool swapped;
    int split;
    int64_t tiles;
};

int step_of(const Problem& p, const DirectConfig& config, bool swapped)
{
    return direct_step(config, major_of(swapped ? p.b : p.a));
}

// Of x: lines that follow each other, and whose places in a tile 31 bits can tell.
bool has_lines(const Operand& x)
{
    constexpr int64_t shortest = 16, longest = int64_t{1} << 23;
    const int64_t line = line_stride(x);
    return line >= (x.k_stride == 1 ? 1 : shortest) && line <= longest;
}

bool is_allowed(const Problem& p, const DirectWay& way, const Options& o, int sm_count)
{
    const auto orientation = way.swapped ? Orientation::Swapped : Orientation::Plain;
    const Operand& x = way.swapped ? p.b : p.a;
    if (way.tiles * way.split > INT32_MAX || way.tiles > max_tiles || !has_lines(x) ||
        !has_direct_major(way.config, major_of(x)))
        return false;
    if ((o.split > 0 && o.split != way.split) ||
        (o.orientation != Orientation::Free && o.orientation != orientation) ||
        o.sharing == Sharing::Stream)
        return false;
    return way.split <= std::min<int64_t>(ceil_div(p.k, step_of(p, way.config, way.swapped)),
                                          direct_splits(way.config)) &&
           (o.sm_limit == 0 || way.tiles * way.split <= sm_count);
}

// In the order of direct.def, from 2,568 measurements of 310 products (h200_sm90_direct_ways.txt.xz): bytes
// a microsecond of a multiprocessor (the last row waits for steps instead), and microseconds of a step
// where x is contiguous along k and where not.
struct Costs {
    double rate, step, step_of_panels;
};
constexpr Costs costs[] = {{117e3, 0.372, 0.0},
                           {130e3, 0.294, 0.359},
                           {173e3, 0.533, 0.0},
                           {212e3, 0.485, 0.784},
                           {3360e3, 1.03, 1.19}};
static_assert(std::size(costs) == direct_count);

// How much more the bytes of an operand cost than those of an x that is aligned and contiguous along k.
double weigh_x(const Operand& x, int64_t batch)
{
    constexpr double panels = 1.14, unaligned = 2.76;
    return (x.k_stride == 1 ? 1.0 : panels) * (is_vector_operand(x, batch) ? 1.0 : unaligned);
}

double weigh_y(const Operand& y, int64_t batch)
{
    return y.k_stride == 1 && is_vector_operand(y, batch) ? 0.0 : 4.69;
}

// Microseconds of a CTA's next step.
double predict_step(const Problem& p, const Costs& cost, const Operand& x, const Operand& y)
{
    constexpr double gathering = 0.18, shifting = 0.78;
    return (x.k_stride == 1 ? cost.step : cost.step_of_panels) * (y.k_stride == 1 ? 1.0 : 1.0 + gathering) *
           (is_vector_operand(x, p.batch) ? 1.0 : 1.0 + shifting);
}

// Time in microseconds: memory, the fullest multiprocessor's share of operands and results, and one CTA's
// steps after another.
double predict_direct(const Problem& p, const DirectWay& way, int sm_count)
{
    constexpr double launch = 1.62, sum = 0.325, sum_of_slice = 0.022, wave = 1.04, memory = 14e6;
    constexpr double interleaving = 0.87, store = 1.14 / 1024, store_swapped = 0.93 / 1024;
    const DirectConfig& c = way.config;
    const Costs& cost = costs[&c - direct_configs];
    const Operand &x = way.swapped ? p.b : p.a, &y = way.swapped ? p.a : p.b;
    const Major major = major_of(x);
    const auto tiles = static_cast<double>(way.tiles);
    const auto at_once = static_cast<double>(clusters_held(c.residents, way.split, sm_count));
    const double waves = std::ceil(tiles / at_once), full = std::floor(tiles / at_once);
    const double load = full * c.residents + std::ceil((tiles - full * at_once) * way.split / sm_count);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const double bytes = 2.0 * static_cast<double>(p.batch) * (k * (m + n) + m * n);
    const double share = 2.0 * k / way.split * (c.x * weigh_x(x, p.batch) + c.y * weigh_y(y, p.batch));
    const double steps =
        std::ceil(std::ceil(k / direct_step(c, major)) / way.split / direct_sharers(c, major));
    return launch + (way.split > 1 ? sum + sum_of_slice * way.split : 0.0) + wave * (waves - 1.0) +
           (major == Major::K ? 0.0 : interleaving) + bytes / memory +
           load * (share / cost.rate + c.x * c.y * (way.swapped ? store_swapped : store)) +
           waves * steps * predict_step(p, cost, x, y);
}

void fill(const Problem& p, const DirectWay& way, const Options& o, double us, Plan& plan)
{
    const Operand& x = way.swapped ? p.b : p.a;
    plan.row = row_count + static_cast<int>(&way.config - direct_configs);
    plan.variant = (p.type_ab == Type::BF16 ? 4 : 0) + (x.k_stride == 1 ? 0 : 2);
    plan.swapped = way.swapped;
    plan.split = plan.cluster = way.split;
    plan.overlaps = o.overlap != Overlap::None;
    plan.early = o.overlap == Overlap::Free || o.overlap == Overlap::Early;
    plan.tiles = way.tiles;
    plan.grid = way.tiles * way.split;
    plan.predicted_us = us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

DirectOperand pack_operand(const Operand& o, int64_t rows)
{
    return {static_cast<const uint16_t*>(o.ptr),
            reinterpret_cast<const uint16_t* const*>(o.array),
            o.batch_stride,
            o.row_stride,
            o.k_stride,
            static_cast<int32_t>(rows)};
}

}  // namespace

bool choose_direct(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    if (o.mode == Mode::BatchInvariant || p.k == 0 || std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return false;
    const int sm_count = o.sm_count(device);
    bool found = false;
    for (const DirectConfig& config : direct_configs) {
        if (is_forced_away(o, rows[row_count + (&config - direct_configs)]))
            continue;
        for (const bool swapped : {false, true})
            for (int split = 1; split <= max_cluster; ++split) {
                const DirectWay way{config, swapped, split, count_tiles(p, config.x, config.y, swapped)};
                if (!is_allowed(p, way, o, sm_count))
                    continue;
                const double us = predict_direct(p, way, sm_count);
                if (found && us >= plan.predicted_us)
                    continue;
                found = true;
                fill(p, way, o, us, plan);
            }
    }
    return found;
}

void pack_direct(const Problem& p, const Plan& plan, DirectParams& params)
{
    const int64_t rows_x = plan.swapped ? p.n : p.m, rows_y = plan.swapped ? p.m : p.n;
    const DirectConfig& config = direct_configs[plan.row - row_count];
    const int64_t steps = ceil_div(p.k, step_of(p, config, plan.swapped));
    params = {};
    params.x = pack_operand(plan.swapped ? p.b : p.a, rows_x);
    params.y = pack_operand(plan.swapped ? p.a : p.b, rows_y);
    params.output = pack_output(p);
    params.grid = tile_grid(static_cast<int32_t>(ceil_div(rows_x, config.x)),
                            static_cast<int32_t>(ceil_div(rows_y, config.y)), 1);
    params.k = static_cast<int32_t>(p.k);
    params.split = divisor(plan.split);
    for (int slice = 0; slice <= max_cluster; ++slice)
        params.slice_start[slice] = static_cast<int32_t>(steps * std::min(slice, plan.split) / plan.split);
    params.swapped = plan.swapped;
    params.prefetches = !params.x.array && !p.alpha_device && p.alpha != 0.0f;
    params.early = plan.early;
}

}  // namespace hg::sm90
