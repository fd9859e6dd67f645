// Problem x Device -> a kernel that reads operands without TMA: legality, then a cost model.
#include "arch/sm90/direct.hpp"

#include "arch/common/tma.hpp"
#include "arch/sm90/learned.hpp"
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

// Rows of x from tile to tile.
int64_t width_of(const Problem& p, const DirectConfig& config, bool swapped)
{
    return direct_width(config, is_vector_operand(swapped ? p.b : p.a, p.batch));
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
    constexpr int64_t beyond = 1 << 16;  // lines are counted past the last one
    if (takes_lines(way.config) && p.k > max_tma_extent - beyond)
        return false;
    if (takes_lines(way.config) && !*o.kernel && (way.swapped ? p.m : p.n) > way.config.y)
        return false;  // x would be read again
    // Tiles that fill the device by themselves: 1 x 57344 x 8192 takes 306 us, in three slices 310.
    if (takes_lines(way.config) && o.split == 0 && way.split > 1 && 2 * way.tiles >= 3 * sm_count)
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

// Where lanes multiply lines of x, in the order of direct.def, from 2,302 measurements of 223 products on
// an H100 (h100_sm90_lines.txt.xz): microseconds that a CTA takes for eight lines of each of its parts, 32
// KB, and bytes a microsecond that they get from an H100's memory.
struct LineCosts {
    double lines, rate;
};
constexpr LineCosts line_costs[] = {{0.711, 2.87e6}, {0.811, 2.87e6}, {1.049, 2.87e6}, {0.711, 3.27e6},
                                    {0.811, 3.27e6}, {0.711, 3.41e6}, {0.811, 3.41e6}, {1.049, 3.41e6}};
static_assert(std::size(costs) + std::size(line_costs) == direct_count);

// How much faster an H200's is, by clock and bus.
constexpr double h200_memory = 1.43;

// Time in microseconds: one CTA's lines after another, a little slower for each other that shares its
// multiprocessor, and memory, which add up as the legs of a triangle do. CTAs of clusters of 3, 5, 6 and 7
// are the ones that crowd.
double predict_lines(const Problem& p, const DirectWay& way, int sm_count, double memory)
{
    constexpr double launch = 1.37, sum = 0.18, sum_of_slice = 0.119, wave = 2.14, sum_of_part = 0.0106;
    constexpr double sharing = 0.054, oddness = 0.1, norm = 1.78;
    const DirectConfig& c = way.config;
    const LineCosts& cost = line_costs[&c - direct_configs - std::size(costs)];
    const auto tiles = static_cast<double>(way.tiles);
    const auto at_once = static_cast<double>(clusters_held(c.residents, way.split, sm_count));
    const double waves = std::ceil(tiles / at_once), full = std::floor(tiles / at_once);
    const double crowd = std::ceil((tiles - full * at_once) * way.split / sm_count);
    const double steps = std::ceil(static_cast<double>(p.k) / direct_step(c, Major::MN));
    const double rounds = std::ceil(std::ceil(steps / way.split) / direct_vectors) * cost.lines;
    const double slices =
        full * (1.0 + sharing * (c.residents - 1)) + (waves > full ? 1.0 + sharing * (crowd - 1.0) : 0.0);
    const double odd = (way.split & (way.split - 1)) != 0 ? 1.0 + oddness : 1.0;
    const double bytes =
        2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
    const double legs =
        std::pow(odd * rounds * slices, norm) + std::pow(bytes / (cost.rate * memory), norm);
    return launch + std::pow(legs, 1.0 / norm) + (way.split > 1 ? sum + sum_of_slice * way.split : 0.0) +
           wave * (waves - 1.0) + sum_of_part * direct_sharers(c, Major::MN) * c.y;
}

// When it starts. Lines of x keep memory busy to the end, so that the next kernel had better not begin to
// ask as well: 1 x 8191 x 8191 takes 49.9 us if that starts early, 48.6 if late. In one long wave CTAs that
// come while others still run crowd: 1 x 57344 x 8192 takes 318 us, alone 306.
Overlap overlap_of(const DirectWay& way, const Options& o, double us, int sm_count)
{
    constexpr double long_wave = 50;  // us, of a CTA on each multiprocessor
    if (o.overlap != Overlap::Free)
        return o.overlap;
    if (!takes_lines(way.config))
        return Overlap::Early;
    const int64_t ctas = ceil_div(way.tiles * way.split, int64_t{sm_count});
    return us < long_wave * static_cast<double>(ctas) ? Overlap::Late : Overlap::None;
}

void fill(const Problem& p, const DirectWay& way, const Options& o, Overlap overlap, double us, Plan& plan)
{
    const Operand& x = way.swapped ? p.b : p.a;
    plan.row = row_count + static_cast<int>(&way.config - direct_configs);
    plan.variant = (p.type_ab == Type::BF16 ? 4 : 0) + (x.k_stride == 1 ? 0 : 2);
    plan.swapped = way.swapped;
    plan.split = plan.cluster = way.split;
    plan.overlaps = overlap != Overlap::None;
    plan.early = overlap == Overlap::Early;
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

// Is x, beside the few rows of y, best read as lines? Where TMA cannot address it, 217 products of an H100
// took 0.81 of their time, but not those of few rows and deep k, which tiles and slices are too few for: 1
// x 129 x 30000 takes 14.5 us, by others 12.4. Where TMA can, that is so of what takes longest, if there
// are tiles for all multiprocessors: 1 x 57344 x 8192 306 us, by TMA 320, 1 x 128256 x 4096 344 and 354.
// Batches were not measured.
bool is_for_lines(const Problem& p, const Operand& x, int64_t rows_x, int64_t rows_y)
{
    constexpr int64_t most_rows = 4, most_rows_of_vast = 2, deep = 40, vast = int64_t{600} << 20,
                      wide = 224 * 256;
    if (p.batch > 1 || rows_y > most_rows || major_of(x) == Major::K || !has_lines(x))
        return false;
    if (!is_tma_operand(x, p.batch))
        return p.k <= deep * rows_x;
    return rows_y <= most_rows_of_vast && rows_x >= wide && 2 * rows_x * p.k >= vast;
}

}  // namespace

bool is_for_lines(const Problem& p)
{
    return is_for_lines(p, p.a, p.m, p.n) || is_for_lines(p, p.b, p.n, p.m);
}

bool choose_direct(const Problem& p, const Device& device, const Options& o, DirectKind kind, Plan& plan)
{
    plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    if (o.mode == Mode::BatchInvariant || p.k == 0 || std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return false;
    const int sm_count = o.sm_count(device);
    const double memory = card_of(device) == Card::H100 ? 1.0 : h200_memory;
    bool found = false;
    for (const DirectConfig& config : direct_configs) {
        if (is_forced_away(o, rows[row_count + (&config - direct_configs)]) ||
            (!*o.kernel && takes_lines(config) != (kind == DirectKind::Lines)))
            continue;
        for (const bool swapped : {false, true})
            for (int split = 1; split <= max_cluster; ++split) {
                const DirectWay way{config, swapped, split,
                                    count_tiles(p, width_of(p, config, swapped), config.y, swapped)};
                if (!is_allowed(p, way, o, sm_count))
                    continue;
                const double us = takes_lines(config) ? predict_lines(p, way, sm_count, memory)
                                                      : predict_direct(p, way, sm_count);
                if (found && us >= plan.predicted_us)
                    continue;
                found = true;
                fill(p, way, o, overlap_of(way, o, us, sm_count), us, plan);
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
    params.width = static_cast<int32_t>(width_of(p, config, plan.swapped));
    params.grid = tile_grid(static_cast<int32_t>(ceil_div(rows_x, params.width)),
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
