#include "arch/sm90/choose/direct.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/model/output_costs.hpp"
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

// Is one dimension of A contiguous, with a leading dimension such that offsets in a tile fit 31 bits?
bool has_contiguous_dimension(const Operand& a)
{
    constexpr int64_t min_m_major = 16, max_stride = int64_t{1} << 23;
    const int64_t stride = line_stride(a);
    return stride >= (a.k_stride == 1 ? 1 : min_m_major) && stride <= max_stride;
}

bool is_legal(const Facts& f, const DirectCandidate& candidate, const Options& o, int sm_count)
{
    const Problem& p = f.problem;
    const auto swap_ab = candidate.swap_ab ? SwapAb::On : SwapAb::Off;
    const Operand& a = Mma(p, candidate.swap_ab).a;
    if (candidate.tiles * candidate.split > INT32_MAX || candidate.tiles > max_tiles ||
        !has_contiguous_dimension(a) || !has_direct_major(candidate.config, major_of(a)))
        return false;
    constexpr int64_t beyond = 1 << 16;  // the kernel counts K past the last one
    if (is_gemv(candidate.config) && p.k > max_tma_extent - beyond)
        return false;
    if (is_gemv(candidate.config) && !*o.kernel &&
        (candidate.swap_ab ? p.m : p.n) > candidate.config.tile_n)
        return false;  // A would be read more than once
    // Tiles that fill the device without slices.
    if (is_gemv(candidate.config) && o.split == 0 && candidate.split > 1 &&
        2 * candidate.tiles >= 3 * sm_count)
        return false;
    if ((o.split > 0 && o.split != candidate.split) ||
        (o.swap_ab != SwapAb::Free && o.swap_ab != swap_ab) || o.stream_k == StreamK::On)
        return false;
    return candidate.split <=
               std::min<int64_t>(ceil_div(p.k, step_of(f, candidate.config, candidate.swap_ab)),
                                 max_direct_slices(candidate.config)) &&
           o.takes_cluster(candidate.split) &&
           (o.sm_limit == 0 || candidate.tiles * candidate.split <= sm_count);
}

// DIRECT kernels in the order of kernels.def: bytes a microsecond of an SM (so high in the last row that
// its steps decide), and microseconds of a step where A is K-major and where it is M-major. Fitted:
// EXPERIMENTS.md#direct-and-gemv.
struct Costs {
    double rate, step, step_m_major;
};
constexpr Costs costs[] = {{117e3, 0.372, 0.0},
                           {130e3, 0.294, 0.359},
                           {173e3, 0.533, 0.0},
                           {212e3, 0.485, 0.784},
                           {3360e3, 1.03, 1.19}};

// What a byte of an operand costs, relative to an A that is aligned and K-major.
double weigh_a(const OperandFacts& a)
{
    constexpr double m_major = 1.14, unaligned = 2.76;
    return (a.major == Major::K ? 1.0 : m_major) * (a.vectors ? 1.0 : unaligned);
}

double weigh_b(const OperandFacts& b) { return b.major == Major::K && b.vectors ? 0.0 : 4.69; }

// Microseconds of one step of a CTA.
double predict_step(const Costs& cost, const OperandFacts& a, const OperandFacts& b)
{
    constexpr double gathering = 0.18, shifting = 0.78;
    return (a.major == Major::K ? cost.step : cost.step_m_major) *
           (b.major == Major::K ? 1.0 : 1.0 + gathering) * (a.vectors ? 1.0 : 1.0 + shifting);
}

// Microseconds: the sum of memory's time, the fullest SM's share of operands and results, and the steps of
// one CTA.
double predict_direct(const Facts& f, const DirectCandidate& candidate, const Factors& factors,
                      int sm_count)
{
    const Problem& p = f.problem;
    constexpr double launch = 1.62, sum = 0.325, sum_of_slice = 0.022, wave = 1.04, memory = 14e6;
    constexpr double interleaving = 0.87, store = 1.14 / 1024, store_swapped = 0.93 / 1024;
    const DirectConfig& c = candidate.config;
    const Costs& cost = costs[&c - direct_configs];
    const OperandFacts &a = f.mma_a(candidate.swap_ab), &b = f.mma_b(candidate.swap_ab);
    const Major major = a.major;
    const auto tiles = static_cast<double>(candidate.tiles);
    const auto resident = static_cast<double>(resident_clusters(c.ctas_per_sm, candidate.split, sm_count));
    const double waves = std::ceil(tiles / resident), full = std::floor(tiles / resident);
    const double load =
        full * c.ctas_per_sm + std::ceil((tiles - full * resident) * candidate.split / sm_count);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const double bytes = 2.0 * static_cast<double>(p.batch) * (k * (m + n) + m * n);
    const double share = 2.0 * k / candidate.split * (c.tile_m * weigh_a(a) + c.tile_n * weigh_b(b));
    const double steps =
        std::ceil(std::ceil(k / direct_step(c, major)) / candidate.split / direct_sharers(c, major));
    const double once = launch + (candidate.split > 1 ? sum + sum_of_slice * candidate.split : 0.0) +
                        wave * (waves - 1.0) + (major == Major::K ? 0.0 : interleaving);
    return factors.fixed * once + factors.memory * bytes / memory +
           factors.cycles * load *
               (share / cost.rate + c.tile_m * c.tile_n * (candidate.swap_ab ? store_swapped : store) +
                output_us(f, Schedule::SplitK, c.tile_m, c.tile_n)) +
           factors.cycles * waves * steps * predict_step(cost, a, b);
}

// GEMV kernels in the order of kernels.def: microseconds of a round, in which each part of a CTA multiplies
// eight K (32 KB of A), and bytes a microsecond from an H100's memory. Fitted:
// EXPERIMENTS.md#direct-and-gemv.
struct GemvCosts {
    double round_us, rate;
};
constexpr GemvCosts gemv_costs[] = {{0.711, 2.87e6}, {0.811, 2.87e6}, {1.049, 2.87e6}, {0.711, 3.27e6},
                                    {0.811, 3.27e6}, {0.711, 3.41e6}, {0.811, 3.41e6}, {1.049, 3.41e6}};
static_assert(std::size(costs) + std::size(gemv_costs) == direct_count);

// How much faster an H200's memory is, by clock and width of the bus.
constexpr double h200_memory = 1.43;

// Microseconds: the rounds of a CTA, slower by a little for each CTA that shares its SM, and memory's time,
// added by a norm. Clusters whose size is no power of two crowd on some SMs (`oddness`).
double predict_gemv(const Problem& p, const DirectCandidate& candidate, const Factors& factors,
                    int sm_count, double memory)
{
    constexpr double launch = 1.37, sum = 0.18, sum_of_slice = 0.119, wave = 2.14, sum_of_part = 0.0106;
    constexpr double sharing = 0.054, oddness = 0.1, norm = 1.78;
    const DirectConfig& c = candidate.config;
    const GemvCosts& cost = gemv_costs[&c - direct_configs - std::size(costs)];
    const auto tiles = static_cast<double>(candidate.tiles);
    const auto resident = static_cast<double>(resident_clusters(c.ctas_per_sm, candidate.split, sm_count));
    const double waves = std::ceil(tiles / resident), full = std::floor(tiles / resident);
    const double crowd = std::ceil((tiles - full * resident) * candidate.split / sm_count);
    const double steps = std::ceil(static_cast<double>(p.k) / direct_step(c, Major::MN));
    const double rounds = std::ceil(std::ceil(steps / candidate.split) / direct_vectors) * cost.round_us;
    const double slices =
        full * (1.0 + sharing * (c.ctas_per_sm - 1)) + (waves > full ? 1.0 + sharing * (crowd - 1.0) : 0.0);
    const double odd = (candidate.split & (candidate.split - 1)) != 0 ? 1.0 + oddness : 1.0;
    const double bytes =
        2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
    const double total = std::pow(factors.cycles * odd * rounds * slices, norm) +
                         std::pow(factors.memory * bytes / (cost.rate * memory), norm);
    return factors.fixed * launch + std::pow(total, 1.0 / norm) +
           factors.fixed * (candidate.split > 1 ? sum + sum_of_slice * candidate.split : 0.0) +
           factors.fixed * wave * (waves - 1.0) +
           factors.fixed * sum_of_part * direct_sharers(c, Major::MN) * c.tile_n;
}

double predict_direct(const Facts& f, const Device& device, const DirectCandidate& candidate, int sm_count)
{
    const int kernel = first_direct + static_cast<int>(&candidate.config - direct_configs);
    const Factors& factors = KernelFactors(device, kernels)[kernel];
    const double memory = card_of(device) == Card::H100 ? 1.0 : h200_memory;
    return is_gemv(candidate.config) ? predict_gemv(f.problem, candidate, factors, sm_count, memory)
                                     : predict_direct(f, candidate, factors, sm_count);
}

// A gemv kernel keeps memory busy to its end, so the next kernel should not start early. In one long wave
// it should start on an idle device itself: CTAs that arrive while others run crowd on some SMs.
// EXPERIMENTS.md#direct-and-gemv.
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

// Is a gemv kernel best, where `a` is the MMA's A? Where TMA cannot address A: yes, unless its rows are so
// few and K so long that there are too few tiles and slices. Where TMA can: only for a vast A with tiles
// for all SMs. Batches were not measured. EXPERIMENTS.md#direct-and-gemv.
bool prefers_gemv(const Problem& p, const Operand& a, const OperandFacts& facts, int64_t rows_a,
                  int64_t rows_b)
{
    constexpr int64_t max_rows_b = 4, max_rows_b_of_vast = 2, max_k_per_row = 40,
                      vast_bytes = int64_t{600} << 20, wide = 224 * 256;
    if (p.batch > 1 || rows_b > max_rows_b || facts.major == Major::K || !has_contiguous_dimension(a))
        return false;
    if (!facts.tma)
        return p.k <= max_k_per_row * rows_a;
    return rows_b <= max_rows_b_of_vast && rows_a >= wide && 2 * rows_a * p.k >= vast_bytes;
}

}  // namespace

bool prefers_gemv(const Facts& f)
{
    const Problem& p = f.problem;
    return prefers_gemv(p, p.a, f.a, p.m, p.n) || prefers_gemv(p, p.b, f.b, p.n, p.m);
}

double predict_direct_plan(const Facts& f, const Device& device, const Plan& plan, int sm_count)
{
    return predict_direct(
        f, device, {direct_configs[plan.kernel - first_direct], plan.swap_ab, plan.split, plan.tiles},
        sm_count);
}

bool choose_direct(const Facts& f, const Device& device, const Options& o, DirectFamily family, Plan& plan)
{
    const Problem& p = f.problem;
    plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
    if (o.mode == Mode::BatchInvariant || p.k == 0 || std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return false;
    const int sm_count = o.sm_count(device);
    bool found = false;
    for (const DirectConfig& config : direct_configs) {
        if (is_forced_away(o, kernels[first_direct + (&config - direct_configs)]) ||
            (!*o.kernel && is_gemv(config) != (family == DirectFamily::Gemv)))
            continue;
        for (const bool swap_ab : {false, true})
            for (int split = 1; split <= max_cluster; ++split) {
                const DirectCandidate candidate{
                    config, swap_ab, split,
                    count_tiles(p, width_of(f, config, swap_ab), config.tile_n, swap_ab)};
                if (!is_legal(f, candidate, o, sm_count))
                    continue;
                const double us = predict_direct(f, device, candidate, sm_count);
                if (found && us >= plan.predicted_us)
                    continue;
                found = true;
                fill(p, candidate, o, pdl_of(candidate, o, us, sm_count), us, plan);
            }
    }
    return found;
}

}  // namespace hg::sm90
