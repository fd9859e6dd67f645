#include "arch/sm90/choose/direct.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/choose/model.hpp"
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/direct/host.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <iterator>

namespace hg::sm90 {
namespace {

struct DirectCandidate {
    const DirectConfig& config;
    bool swap_ab;
    int split;
    int64_t tiles;
};

// Of x: lines that follow each other, and whose places in a tile 31 bits can tell.
bool has_lines(const Operand& a)
{
    constexpr int64_t shortest = 16, longest = int64_t{1} << 23;
    const int64_t line = line_stride(a);
    return line >= (a.k_stride == 1 ? 1 : shortest) && line <= longest;
}

bool is_legal(const Problem& p, const DirectCandidate& candidate, const Options& o, int sm_count)
{
    const auto swap_ab = candidate.swap_ab ? SwapAb::On : SwapAb::Off;
    const Operand& a = Mma(p, candidate.swap_ab).a;
    if (candidate.tiles * candidate.split > INT32_MAX || candidate.tiles > max_tiles || !has_lines(a) ||
        !has_direct_major(candidate.config, major_of(a)))
        return false;
    constexpr int64_t beyond = 1 << 16;  // lines are counted past the last one
    if (is_gemv(candidate.config) && p.k > max_tma_extent - beyond)
        return false;
    if (is_gemv(candidate.config) && !*o.kernel &&
        (candidate.swap_ab ? p.m : p.n) > candidate.config.tile_n)
        return false;  // x would be read again
    // Tiles that fill the device by themselves: 1 x 57344 x 8192 takes 306 us, in three slices 310.
    if (is_gemv(candidate.config) && o.split == 0 && candidate.split > 1 &&
        2 * candidate.tiles >= 3 * sm_count)
        return false;
    if ((o.split > 0 && o.split != candidate.split) ||
        (o.swap_ab != SwapAb::Free && o.swap_ab != swap_ab) || o.stream_k == StreamK::On)
        return false;
    return candidate.split <=
               std::min<int64_t>(ceil_div(p.k, step_of(p, candidate.config, candidate.swap_ab)),
                                 max_direct_slices(candidate.config)) &&
           (o.sm_limit == 0 || candidate.tiles * candidate.split <= sm_count);
}

// In the order of direct.def, from 2,568 measurements of 310 products (h200_sm90_direct_ways.txt.xz): bytes
// a microsecond of an SM (the last row waits for steps instead), and microseconds of a step
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
double weigh_a(const Operand& a, int64_t batch)
{
    constexpr double panels = 1.14, unaligned = 2.76;
    return (a.k_stride == 1 ? 1.0 : panels) * (is_vector_operand(a, batch) ? 1.0 : unaligned);
}

double weigh_b(const Operand& b, int64_t batch)
{
    return b.k_stride == 1 && is_vector_operand(b, batch) ? 0.0 : 4.69;
}

// Microseconds of a CTA's next step.
double predict_step(const Problem& p, const Costs& cost, const Operand& a, const Operand& b)
{
    constexpr double gathering = 0.18, shifting = 0.78;
    return (a.k_stride == 1 ? cost.step : cost.step_of_panels) * (b.k_stride == 1 ? 1.0 : 1.0 + gathering) *
           (is_vector_operand(a, p.batch) ? 1.0 : 1.0 + shifting);
}

// Time in microseconds: memory, the fullest SM's share of operands and results, and one CTA's
// steps after another.
double predict_direct(const Problem& p, const DirectCandidate& candidate, int sm_count)
{
    constexpr double launch = 1.62, sum = 0.325, sum_of_slice = 0.022, wave = 1.04, memory = 14e6;
    constexpr double interleaving = 0.87, store = 1.14 / 1024, store_swapped = 0.93 / 1024;
    const DirectConfig& c = candidate.config;
    const Costs& cost = costs[&c - direct_configs];
    const Mma mma(p, candidate.swap_ab);
    const Operand &a = mma.a, &b = mma.b;
    const Major major = major_of(a);
    const auto tiles = static_cast<double>(candidate.tiles);
    const auto at_once = static_cast<double>(clusters_held(c.ctas_per_sm, candidate.split, sm_count));
    const double waves = std::ceil(tiles / at_once), full = std::floor(tiles / at_once);
    const double load =
        full * c.ctas_per_sm + std::ceil((tiles - full * at_once) * candidate.split / sm_count);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const double bytes = 2.0 * static_cast<double>(p.batch) * (k * (m + n) + m * n);
    const double share =
        2.0 * k / candidate.split * (c.tile_m * weigh_a(a, p.batch) + c.tile_n * weigh_b(b, p.batch));
    const double steps =
        std::ceil(std::ceil(k / direct_step(c, major)) / candidate.split / direct_sharers(c, major));
    return launch + (candidate.split > 1 ? sum + sum_of_slice * candidate.split : 0.0) +
           wave * (waves - 1.0) + (major == Major::K ? 0.0 : interleaving) + bytes / memory +
           load * (share / cost.rate + c.tile_m * c.tile_n * (candidate.swap_ab ? store_swapped : store)) +
           waves * steps * predict_step(p, cost, a, b);
}

// Where lanes multiply lines of x, in the order of direct.def, from 2,302 measurements of 223 products on
// an H100 (h100_sm90_lines.txt.xz): microseconds that a CTA takes for eight lines of each of its parts, 32
// KB, and bytes a microsecond that they get from an H100's memory.
struct GemvCosts {
    double lines, rate;
};
constexpr GemvCosts gemv_costs[] = {{0.711, 2.87e6}, {0.811, 2.87e6}, {1.049, 2.87e6}, {0.711, 3.27e6},
                                    {0.811, 3.27e6}, {0.711, 3.41e6}, {0.811, 3.41e6}, {1.049, 3.41e6}};
static_assert(std::size(costs) + std::size(gemv_costs) == direct_count);

// How much faster an H200's is, by clock and bus.
constexpr double h200_memory = 1.43;

// Time in microseconds: one CTA's lines after another, a little slower for each other that shares its
// SM, and memory, which add up as the legs of a triangle do. CTAs of clusters of 3, 5, 6 and 7
// are the ones that crowd.
double predict_gemv(const Problem& p, const DirectCandidate& candidate, int sm_count, double memory)
{
    constexpr double launch = 1.37, sum = 0.18, sum_of_slice = 0.119, wave = 2.14, sum_of_part = 0.0106;
    constexpr double stream_k = 0.054, oddness = 0.1, norm = 1.78;
    const DirectConfig& c = candidate.config;
    const GemvCosts& cost = gemv_costs[&c - direct_configs - std::size(costs)];
    const auto tiles = static_cast<double>(candidate.tiles);
    const auto at_once = static_cast<double>(clusters_held(c.ctas_per_sm, candidate.split, sm_count));
    const double waves = std::ceil(tiles / at_once), full = std::floor(tiles / at_once);
    const double crowd = std::ceil((tiles - full * at_once) * candidate.split / sm_count);
    const double steps = std::ceil(static_cast<double>(p.k) / direct_step(c, Major::MN));
    const double rounds = std::ceil(std::ceil(steps / candidate.split) / direct_vectors) * cost.lines;
    const double slices = full * (1.0 + stream_k * (c.ctas_per_sm - 1)) +
                          (waves > full ? 1.0 + stream_k * (crowd - 1.0) : 0.0);
    const double odd = (candidate.split & (candidate.split - 1)) != 0 ? 1.0 + oddness : 1.0;
    const double bytes =
        2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
    const double legs =
        std::pow(odd * rounds * slices, norm) + std::pow(bytes / (cost.rate * memory), norm);
    return launch + std::pow(legs, 1.0 / norm) +
           (candidate.split > 1 ? sum + sum_of_slice * candidate.split : 0.0) + wave * (waves - 1.0) +
           sum_of_part * direct_sharers(c, Major::MN) * c.tile_n;
}

// When it starts. Lines of x keep memory busy to the end, so that the next kernel had better not begin to
// ask as well: 1 x 8191 x 8191 takes 49.9 us if that starts early, 48.6 if late. In one long wave CTAs that
// come while others still run crowd: 1 x 57344 x 8192 takes 318 us, alone 306.
Pdl pdl_of(const DirectCandidate& candidate, const Options& o, double us, int sm_count)
{
    constexpr double long_wave = 50;  // us, of a CTA on each SM
    if (o.pdl != Pdl::Free)
        return o.pdl;
    if (!is_gemv(candidate.config))
        return Pdl::Early;
    const int64_t ctas = ceil_div(candidate.tiles * candidate.split, int64_t{sm_count});
    return us < long_wave * static_cast<double>(ctas) ? Pdl::Late : Pdl::Off;
}

void fill(const Problem& p, const DirectCandidate& candidate, const Options& o, Pdl pdl, double us,
          Plan& plan)
{
    const Operand& a = Mma(p, candidate.swap_ab).a;
    plan.kernel = first_direct + static_cast<int>(&candidate.config - direct_configs);
    plan.variant = (p.type_ab == Type::BF16 ? 4 : 0) + (a.k_stride == 1 ? 0 : 2);
    plan.swap_ab = candidate.swap_ab;
    plan.split = plan.cluster = candidate.split;
    plan.pdl = pdl;
    plan.tiles = candidate.tiles;
    plan.grid = candidate.tiles * candidate.split;
    plan.predicted_us = us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// Is x, beside the few rows of y, best read as lines? Where TMA cannot address it, 217 products of an H100
// took 0.81 of their time, but not those of few rows and deep k, which tiles and slices are too few for: 1
// x 129 x 30000 takes 14.5 us, by others 12.4. Where TMA can, that is so of what takes longest, if there
// are tiles for all SMs: 1 x 57344 x 8192 306 us, by TMA 320, 1 x 128256 x 4096 344 and 354.
// Batches were not measured.
bool prefers_gemv(const Problem& p, const Operand& a, int64_t rows_a, int64_t rows_b)
{
    constexpr int64_t max_rows = 4, max_rows_of_vast = 2, deep = 40, vast = int64_t{600} << 20,
                      wide = 224 * 256;
    if (p.batch > 1 || rows_b > max_rows || major_of(a) == Major::K || !has_lines(a))
        return false;
    if (!is_tma_operand(a, p.batch))
        return p.k <= deep * rows_a;
    return rows_b <= max_rows_of_vast && rows_a >= wide && 2 * rows_a * p.k >= vast;
}

}  // namespace

bool prefers_gemv(const Problem& p)
{
    return prefers_gemv(p, p.a, p.m, p.n) || prefers_gemv(p, p.b, p.n, p.m);
}

bool choose_direct(const Problem& p, const Device& device, const Options& o, DirectFamily family,
                   Plan& plan)
{
    plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    if (o.mode == Mode::BatchInvariant || p.k == 0 || std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return false;
    const int sm_count = o.sm_count(device);
    const double memory = card_of(device) == Card::H100 ? 1.0 : h200_memory;
    bool found = false;
    for (const DirectConfig& config : direct_configs) {
        if (is_forced_away(o, kernels[first_direct + (&config - direct_configs)]) ||
            (!*o.kernel && is_gemv(config) != (family == DirectFamily::Gemv)))
            continue;
        for (const bool swap_ab : {false, true})
            for (int split = 1; split <= max_cluster; ++split) {
                const DirectCandidate candidate{
                    config, swap_ab, split,
                    count_tiles(p, width_of(p, config, swap_ab), config.tile_n, swap_ab)};
                if (!is_legal(p, candidate, o, sm_count))
                    continue;
                const double us = is_gemv(config) ? predict_gemv(p, candidate, sm_count, memory)
                                                  : predict_direct(p, candidate, sm_count);
                if (found && us >= plan.predicted_us)
                    continue;
                found = true;
                fill(p, candidate, o, pdl_of(candidate, o, us, sm_count), us, plan);
            }
    }
    return found;
}

}  // namespace hg::sm90
