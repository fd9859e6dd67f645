// Three things bound a kernel: the K tiles on the fullest SM, the bytes from memory, and the bytes from L2.
// They do not overlap perfectly, so they are added by a norm, to which launch, epilogue and reduction come.
// The constants were fitted to sweeps on an H200 (README.md).
#include "arch/sm90/choose/model.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

namespace hg::sm90 {
namespace {

// A row of costs.def.
struct Cost {
    std::string_view name;
    int k_cycles, chain, placed;  // cycles of a K tile: on a full SM, alone on an SM, placed by GPC
    double store_us;              // of an epilogue
};

#define COST(name, k_cycles, chain, placed, store_us) {#name, k_cycles, chain, placed, store_us},
constexpr Cost measured[] = {
#include "arch/sm90/choose/costs.def"
};
#undef COST

// By kernel; one that was not measured costs what the nearest kernel does.
constexpr auto costs = entries_by_kernel(measured, Missing::Nearest);

const Cost& cost_of(const Candidate& candidate) { return measured[costs[candidate.kernel]]; }

// Microseconds.
constexpr double launch_persistent = 1.35, launch_split = 1.36;
constexpr double launch_full = 0.591;     // added where a split-K kernel fills the device
constexpr double fill_pipeline = -0.371;  // of split-K kernels, with eight K tiles or more
constexpr double split_latency = 0.309, split_store = 5.3, extra_wave = 1.72;
constexpr double pdl_off_latency = 0.981;
constexpr double stream_latency = 5.55, multicast_latency = 0.0;
constexpr double cluster_latency[] = {0,    0,      -0.196, -0.193, -0.294,
                                      -0.6, -0.341, 0.402,  -0.599};  // by CTAs of a cluster
constexpr double global_latency = 2.0, global_tile = 3.5;
// Bytes a microsecond: of memory, for all SMs and for one; of L2, for aligned rows; of stream-K's sums.
constexpr double memory = 4.8e6, memory_of_one = 105.0e3, l2 = 44.6e6, stream_read = 75.6e3;
// Factors.
constexpr double misaligned_rows = 5.0;  // added to the bytes from L2, times misalignment()
constexpr double multicast = 0.953;      // of bytes from L2 that multicast brings to several CTAs
constexpr double reread = 0.292;         // of the first read of bytes that several CTAs read
// Share of its bytes added for an MN-major operand in tiles of one 128-byte panel; less for wider tiles.
constexpr double narrow_panel = 0.0186;
// Exponent of the factor by which an N-major B in panels that it does not fill makes a stage larger.
constexpr double wide_stage = 2.0;
// Microseconds of L2 for a CTA's K tile of a narrow operand; the first ones cost as if there were more.
constexpr double narrow_k_tile = 2e-3;
constexpr double first_narrow_k_tiles = 8;
constexpr double shown_cooperative = 0.772, shown_ping_pong = 0.0859;  // share of epilogues not hidden
constexpr double drift_cooperative = 0.175, drift_ping_pong = 0.132;   // stream-K: fewer hits in L2
constexpr double crowding = 0.219;  // of `chain`, from an empty to a full device
constexpr double gpc_port = 390;    // bytes a cycle from L2 to all SMs of a GPC
constexpr double placed_norm = 4.0;
constexpr double flops_a_cycle = 4096;  // of an SM
constexpr double clock_drop = 0.0;      // of 1.755 GHz, under a long load
constexpr double norm = 2.39;
// Share of an SM's free places for CTAs that clusters fill while other SMs are idle, by CTAs of a cluster.
constexpr double packing[] = {0, 0, 0.0205, 0.0, 0.919, 0.349, 0.705, 0.209, 0.761};
constexpr double l2_resident = 4e6;        // bytes
constexpr int64_t min_stream_k_tiles = 4;  // of a cluster

// Clusters of 1 to 8 CTAs that run on 132 SMs at a time, by CTAs an SM, as the driver reports.
constexpr int resident_on_132_sms[4][8] = {
    {132, 66, 39, 30, 22, 17, 15, 15},
    {264, 132, 79, 62, 47, 39, 32, 30},
    {396, 198, 124, 92, 69, 62, 47, 45},
    {528, 264, 163, 124, 94, 79, 69, 62},
};

// By what factor a K tile takes longer because an N-major B is read in whole panels.
double panel_effort(const Config& c, Major b)
{
    const double bytes = a_bytes(c) + b_bytes(c, b), narrow = a_bytes(c) + b_bytes(c, Major::K);
    return std::pow(bytes / narrow, wide_stage);
}

// Cycles a microsecond: the clock falls under a long load.
double clock_rate(double flops)
{
    const double us = std::max(flops / 800e6, 1.0);
    return 1755.0 - 1e3 * clock_drop * std::clamp(std::log(us / 8.0) / std::log(500.0 / 8.0), 0.0, 1.0);
}

struct OperandTraffic {
    double bytes;        // of the operand
    double from_l2;      // bytes that all CTAs read, misaligned ones weighted by what they cost
    double from_panels;  // bytes that an MN-major operand in narrow panels costs beside those
    bool again;          // more than one CTA reads each byte
};

// `rows` rows in tiles of `tile`; `across` tiles of the other operand read each of them.
OperandTraffic traffic_of(const Operand& o, const Problem& p, double rows, int tile, double across)
{
    const double bytes = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * rows;
    const double panel = major_of(o) == Major::MN ? bytes * span_elements / tile : 0.0;
    return {bytes, bytes * across * (1.0 + misaligned_rows * misalignment(o)), narrow_panel * panel,
            across > 1};
}

// Microseconds that CTAs wait for an MN-major operand of less than 64 rows whose consecutive K share
// sectors of L2: each of the `readers` requests all of it, K by K.
double wait_for_narrow_operand_us(const Problem& p, const Operand& o, double readers)
{
    constexpr int64_t sector = 16;  // elements
    const int64_t stride = line_stride(o);
    if (major_of(o) == Major::K || stride >= span_elements || stride % sector == 0)
        return 0.0;
    return narrow_k_tile * readers * (std::ceil(static_cast<double>(p.k) / tile_k) + first_narrow_k_tiles);
}

// Cycles of a K tile where tiles are placed by GPC: bounded by the SM, or by the GPC's port to L2.
double placed_cycles(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    const int cluster = c.cluster_ctas(candidate.split);
    if (!c.is_split() || !fits_one_wave(c, cluster, candidate.launched_clusters(), sm_count))
        return cost_of(candidate).k_cycles;
    const Mma mma(p, candidate.swap_ab);
    const auto rows = static_cast<double>(rows_of_gpc(c, cluster, ceil_div(mma.m, c.tile_m * c.cluster_m),
                                                      ceil_div(mma.n, c.tile_n * c.cluster_n)));
    const double slices =
        c.is_global() ? std::max(1.0, sms_per_gpc / static_cast<double>(candidate.clusters * c.ctas()))
                      : candidate.split;
    const double port = rows * slices * tile_k * 2.0 / gpc_port;
    return std::pow(std::pow(cost_of(candidate).placed, placed_norm) + std::pow(port, placed_norm),
                    1.0 / placed_norm);
}

double compute_us(const Problem& p, const Config& c, const Candidate& candidate, const Occupancy& occupancy,
                  double effort, const Factors& factors, int sm_count)
{
    const double k_tiles = std::ceil(std::ceil(static_cast<double>(p.k) / tile_k) / candidate.split);
    const double drift = !candidate.stream_k                ? 0.0
                         : c.schedule == Schedule::PingPong ? drift_ping_pong
                                                            : drift_cooperative;
    const double busy =
        occupancy.crowded * k_tiles *
        (candidate.pdl_off ? placed_cycles(p, c, candidate, sm_count) : cost_of(candidate).k_cycles) *
        (1.0 + drift);
    const double chain =
        occupancy.waves * k_tiles * cost_of(candidate).chain * (1.0 + crowding * (occupancy.filled - 0.5));
    const double flops = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * static_cast<double>(p.k);
    const double cycles = std::max(busy, chain) * effort;
    const double instructions =
        occupancy.crowded * k_tiles * 2.0 * c.tile_m * c.tile_n * tile_k / flops_a_cycle;
    return factors.cycles *
           std::max(cycles + (factors.multiply - 1.0) * instructions,
                    std::min(factors.multiply, 1.0) * cycles) /
           clock_rate(flops);
}

// A cluster leaves its partial sums, and the fix-up reads those of the others.
double stream_k_fixup_us(const Config& c, const Candidate& candidate, const Occupancy& occupancy)
{
    const double others = std::max(1.0, 1.0 / occupancy.waves);
    return candidate.stream_k ? stream_latency + others * c.tile_m * c.tile_n * 4.0 / stream_read : 0.0;
}

double persistent_overhead_us(const Config& c, const Candidate& candidate, const Occupancy& occupancy)
{
    const double shown = c.schedule == Schedule::PingPong ? shown_ping_pong : shown_cooperative;
    const double stores =
        cost_of(candidate).store_us * (1.0 + shown * std::max(occupancy.waves - 1.0, 0.0));
    return launch_persistent + stores + stream_k_fixup_us(c, candidate, occupancy);
}

double reduction_us(const Config& c, const Candidate& candidate)
{
    const double tile = c.tile_m * c.tile_n / 16384.0, slices = candidate.split;
    return c.is_global()         ? global_latency + global_tile * tile
           : candidate.split > 1 ? split_latency + split_store * tile * (slices - 1.0) / slices
                                 : 0.0;
}

double split_k_overhead_us(const Problem& p, const Config& c, const Candidate& candidate,
                           const Occupancy& occupancy)
{
    const double slices = candidate.split, share = std::min(1.0, 1.0 / slices + 0.2);
    const double k_tiles = std::ceil(std::ceil(static_cast<double>(p.k) / tile_k) / slices);
    return launch_split + launch_full * occupancy.filled + fill_pipeline * std::min(k_tiles, 8.0) / 8.0 +
           cost_of(candidate).store_us * share * std::min<double>(occupancy.load, c.ctas_per_sm) +
           reduction_us(c, candidate) + extra_wave * (occupancy.waves - 1.0);
}

// Microseconds between two waves of a low-intensity batch: what its short GEMMs do not hide of epilogues
// and of the way to the next tile.
double batch_wave_us(const Facts& f, const Config& c, const Candidate& candidate)
{
    constexpr double of_split = 1.2, of_crowded = 1.53, of_split_tile = 0.945;
    constexpr double of_persistent = 0.412, of_persistent_tile = 0.483;
    constexpr double of_element = 0.053, shown = 0.7;  // stores element by element, of one thread
    const double tile = c.tile_m * c.tile_n / 16384.0;
    const int consumers = c.schedule == Schedule::PingPong ? 1 : c.consumers;
    const double elements =
        f.output.elements ? of_element * c.tile_m * c.tile_n / (128.0 * consumers * candidate.split) : 0.0;
    return c.is_split() ? (c.ctas_per_sm == 4 ? of_crowded : of_split) + of_split_tile * tile + elements
                        : of_persistent + of_persistent_tile * tile + shown * elements;
}

// Microseconds that a low-intensity batch takes once: launch, fix-up, reduction.
double batch_overhead_us(const Config& c, const Candidate& candidate, const Occupancy& occupancy)
{
    constexpr double start = 0.518, persistent = 0.56, streaming = 0.482, slices = 0.353, sum = 0.224;
    constexpr double idle = 1.27;  // with pdl_off
    const double store = c.is_split() ? 0.0 : persistent * cost_of(candidate).store_us;
    const double parts =
        candidate.split > 1 ? slices * std::sqrt(candidate.split) + sum * reduction_us(c, candidate) : 0.0;
    return start + store + streaming * stream_k_fixup_us(c, candidate, occupancy) + parts +
           (candidate.pdl_off ? idle : 0.0);
}

// Low-intensity batches have constants of their own, from measurements on an H100: choices cost 3.4 % over
// the fastest candidate, 9 % with the network or the constants of single problems. EXPERIMENTS.md#batches.
double predict_low_intensity_batch(const Facts& f, const Config& c, const Candidate& candidate,
                                   const Occupancy& occupancy, const Factors& factors, double compute,
                                   double from_memory, double from_l2)
{
    constexpr double of_memory = 1.249, of_l2 = 1.714, batch_norm = 1.566;
    const double bounds[] = {compute, of_memory * from_memory, of_l2 * from_l2,
                             factors.fixed * occupancy.waves * batch_wave_us(f, c, candidate)};
    double sum = 0;
    for (const double bound : bounds)
        sum += std::pow(bound, batch_norm);
    return factors.fixed * batch_overhead_us(c, candidate, occupancy) + std::pow(sum, 1.0 / batch_norm);
}

// Early start lets the next kernel's CTAs spread over all SMs. Not in one long wave of CTAs that fill an SM
// each: the next kernel's CTAs would start one by one as places become free, and crowd on some SMs.
Pdl pdl_of(const Config& c, const Occupancy& occupancy, int64_t k_tiles)
{
    const bool one_long_wave =
        c.is_split() && c.ctas_per_sm == 1 && occupancy.filled > 0.5 && occupancy.waves == 1.0;
    return one_long_wave && k_tiles > 32 ? Pdl::Late : Pdl::Early;
}

}  // namespace

double misalignment(const Operand& o)
{
    const auto pitch = static_cast<uint64_t>(2 * line_stride(o));
    return 1.0 - static_cast<double>(1 << std::countr_zero(pitch | 128)) / 128.0;
}

bool is_low_intensity_batch(const Problem& p)
{
    constexpr double min_intensity = 140;  // flops a byte
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    return p.batch > 1 && m * n * k < min_intensity * (m * k + n * k + m * n);
}

int64_t Candidate::launched_clusters() const { return clusters * configs[kernel].clusters_per_tile(split); }

int64_t resident_clusters(int ctas_per_sm, int cluster, int sm_count)
{
    return std::max(1,
                    resident_on_132_sms[ctas_per_sm - 1][cluster - 1] * sm_count / max_remapped_clusters);
}

Occupancy occupancy_of(const Config& c, const Candidate& candidate, int sm_count)
{
    const auto clusters = static_cast<double>(candidate.launched_clusters());
    const int cluster = c.cluster_ctas(candidate.split);
    const double ctas = clusters * cluster, sms = sm_count, places = sms * c.ctas_per_sm;
    const double filled = std::min(1.0, ctas / places);
    if (!c.is_split()) {
        const double waves =
            clusters / static_cast<double>(resident_clusters(c.ctas_per_sm, c.ctas(), sm_count));
        const double load = candidate.stream_k ? waves : std::ceil(waves);
        return {ctas, load, load, load, filled};
    }
    const auto resident = static_cast<double>(resident_clusters(c.ctas_per_sm, cluster, sm_count));
    const double full = std::floor(clusters / resident);
    const double rest = (clusters - full * resident) * cluster;
    const double load = full * c.ctas_per_sm + std::ceil(rest / sms);
    const double more = ctas <= places ? packing[cluster] * std::max(0.0, c.ctas_per_sm - load) : 0.0;
    return {ctas, std::ceil(clusters / resident), load, load + more, filled};
}

StreamShape stream_shape(const Config& c, int64_t tiles, int64_t k, int sm_count)
{
    const int64_t resident = resident_clusters(c.ctas_per_sm, c.ctas(), sm_count),
                  k_tiles = ceil_div(k, tile_k);
    const int64_t stream_tiles = tiles < resident        ? tiles
                                 : tiles % resident == 0 ? 0
                                                         : resident + tiles % resident;
    return {stream_tiles, std::min(resident, std::max<int64_t>(1, tiles * k_tiles / min_stream_k_tiles))};
}

Prediction predict(const Facts& f, const Config& c, const Candidate& candidate, int sm_count, double limit,
                   const Factors& factors)
{
    const Problem& p = f.problem;
    const Occupancy occupancy = occupancy_of(c, candidate, sm_count);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
    const Mma mma(p, candidate.swap_ab);
    const double rows_a = candidate.swap_ab ? n : m, rows_b = candidate.swap_ab ? m : n;
    const OperandTraffic a =
        traffic_of(mma.a, p, rows_a, c.tile_m, std::ceil(rows_b / (c.tile_n * c.cluster_n)));
    const OperandTraffic b =
        traffic_of(mma.b, p, rows_b, c.tile_n, std::ceil(rows_a / (c.tile_m * c.cluster_m)));
    const double operands = a.bytes + b.bytes, output = 2.0 * static_cast<double>(p.batch) * m * n;
    const double again = reread * ((a.again ? a.bytes : 0.0) + (b.again ? b.bytes : 0.0));
    double from_memory = (operands + output + a.from_panels + b.from_panels + again) / memory;
    if (operands > l2_resident)
        from_memory = std::max(from_memory, operands * occupancy.crowded / occupancy.ctas / memory_of_one);
    from_memory *= factors.memory;
    const double from_l2 =
        factors.l2 * ((a.from_l2 * (c.cluster_n > 1 ? multicast : 1.0) +
                       b.from_l2 * (c.cluster_m > 1 ? multicast : 1.0)) /
                          l2 +
                      wait_for_narrow_operand_us(p, mma.a, std::ceil(rows_b / (c.tile_n * c.cluster_n))) +
                      wait_for_narrow_operand_us(p, mma.b, std::ceil(rows_a / (c.tile_m * c.cluster_m))));
    const double overhead =
        factors.fixed *
        ((c.is_split() ? split_k_overhead_us(p, c, candidate, occupancy)
                       : persistent_overhead_us(c, candidate, occupancy)) +
         cluster_latency[c.cluster_ctas(candidate.split)] + (c.ctas() > 1 ? multicast_latency : 0.0) +
         (candidate.pdl_off ? pdl_off_latency : 0.0));
    const Pdl pdl = candidate.pdl_off
                        ? Pdl::Off
                        : pdl_of(c, occupancy, ceil_div(ceil_div(p.k, tile_k), candidate.split));
    if (is_low_intensity_batch(p)) {
        const double compute =
            compute_us(p, c, candidate, occupancy, panel_effort(c, major_of(mma.b)), factors, sm_count);
        return {
            predict_low_intensity_batch(f, c, candidate, occupancy, factors, compute, from_memory, from_l2),
            pdl};
    }
    double lower_bound = overhead + std::max(from_memory, from_l2);
    if (lower_bound >= limit)
        return {lower_bound, pdl};
    const double effort = panel_effort(c, major_of(mma.b));
    const double compute = compute_us(p, c, candidate, occupancy, effort, factors, sm_count);
    lower_bound = std::max(lower_bound, overhead + compute);
    if (lower_bound >= limit)
        return {lower_bound, pdl};
    const double sum = std::pow(compute, norm) + std::pow(from_memory, norm) + std::pow(from_l2, norm);
    return {overhead + std::pow(sum, 1.0 / norm), pdl};
}

}  // namespace hg::sm90
