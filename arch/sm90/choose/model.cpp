// Three things bound a kernel, and are added with a norm since they do not overlap perfectly: the k tiles
// on the fullest SM, the bytes of memory, the bytes that L2 delivers. Launch, epilogues and
// the sum over slices come on top. Constants: fitted to sweeps on an H200, see costs.def.
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

// See costs.def.
struct Cost {
    std::string_view name;
    int k_cycles, chain, placed;
    double store_us;
};

#define COST(name, k_cycles, chain, placed, store_us) {#name, k_cycles, chain, placed, store_us},
constexpr Cost measured[] = {
#include "arch/sm90/choose/costs.def"
};
#undef COST

// By kernel; one that was not measured costs what its nearest relative does.
constexpr auto costs = lines_of_kernels(measured, Missing::Nearest);

const Cost& cost_of(const Candidate& candidate) { return measured[costs[candidate.kernel]]; }

// Microseconds.
constexpr double launch_persistent = 1.35, launch_split = 1.36;
constexpr double launch_full = 0.591;     // more, where a split kernel fills the device
constexpr double fill_pipeline = -0.371;  // of split kernels, with eight k tiles or more
constexpr double split_latency = 0.309, split_store = 5.3, extra_wave = 1.72;
constexpr double pdl_off_latency = 0.981;  // of a start after the kernels in front
constexpr double stream_latency = 5.55, multicast_latency = 0.0;
constexpr double cluster_latency[] = {0,    0,      -0.196, -0.193, -0.294,
                                      -0.6, -0.341, 0.402,  -0.599};  // by CTAs
constexpr double global_latency = 2.0, global_tile = 3.5;
// Bytes a microsecond. l2: of lines that begin where a 128-byte line of L2 does.
constexpr double memory = 4.8e6, memory_of_one = 105.0e3, l2 = 44.6e6, stream_read = 75.6e3;
// Factors.
constexpr double misaligned_lines = 5.0;  // more, of lines that begin elsewhere, from L2
constexpr double multicast = 0.953;       // of bytes that one request brings to several CTAs
constexpr double reread = 0.292;          // cost of bytes that several CTAs read, of their first read
// More bytes, of panels of 128 bytes, where an operand is not contiguous along k.
constexpr double narrow_panel = 0.0186;
// Of what more bytes a stage has where y is not contiguous along k and makes no whole panels, in cycles.
constexpr double wide_stage = 2.0;
// Microseconds that a CTA's k tile of lines of few rows takes L2, and how many more the first ones cost.
constexpr double short_line = 2e-3;
constexpr double first_short_lines = 8;
constexpr double overlap_cooperative = 0.772, overlap_ping_pong = 0.0859;  // of an epilogue is not hidden
constexpr double drift_cooperative = 0.175, drift_ping_pong = 0.132;  // streams lose their neighbours in L2
constexpr double crowding = 0.219;  // of the chain, from an empty to a full device
constexpr double gpc_port = 390;    // bytes a cycle that all SMs of a GPC get from L2
constexpr double placed_norm = 4.0;
constexpr double clock_drop = 0.0;  // of 1.755 GHz, under a long load
constexpr double norm = 2.39;
// Of the CTAs an SM holds, those more than needed that crowd on some, by CTAs of a cluster.
constexpr double packing[] = {0, 0, 0.0205, 0.0, 0.919, 0.349, 0.705, 0.209, 0.761};
constexpr double l2_resident = 4e6;  // bytes
constexpr int64_t shortest_run = 4;  // k tiles

// Clusters of 1 to 8 CTAs that 132 SMs hold, by CTAs an SM (the driver's answer).
constexpr int held[4][8] = {
    {132, 66, 39, 30, 22, 17, 15, 15},
    {264, 132, 79, 62, 47, 39, 32, 30},
    {396, 198, 124, 92, 69, 62, 47, 45},
    {528, 264, 163, 124, 94, 79, 69, 62},
};

double effort_of(const Config& c, Major b)
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

// An operand as its tiles read it.
struct Reading {
    double bytes;        // of one reading
    double from_l2;      // bytes of all readings, as many as aligned ones would cost
    double from_panels;  // bytes that panels narrower than they should be cost more
    bool again;          // more than one CTA reads each byte
};

// `rows` rows in tiles of `tile`, read by as many CTAs as there are tiles across. A 128-byte line of the
// operand that does not begin where one of L2 does takes two requests.
Reading read_operand(const Operand& o, const Problem& p, double rows, int tile, double across)
{
    const double bytes = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * rows;
    const double panel = major_of(o) == Major::MN ? bytes * span_elements / tile : 0.0;
    return {bytes, bytes * across * (1.0 + misaligned_lines * misalignment(o)), narrow_panel * panel,
            across > 1};
}

// Microseconds that CTAs wait for lines of few rows side by side that share sectors of L2: each of the
// `readers` asks for all of them, line by line.
double wait_for_short_lines(const Problem& p, const Operand& o, double readers)
{
    constexpr int64_t sector = 16;  // elements
    const int64_t line = line_stride(o);
    if (major_of(o) == Major::K || line >= span_elements || line % sector == 0)
        return 0.0;
    return short_line * readers * (std::ceil(static_cast<double>(p.k) / tile_k) + first_short_lines);
}

// Cycles of a k tile where tiles are put side by side: the GPC's port may be what is waited for.
double placed_cycles(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    const int cluster = c.cluster_ctas(candidate.split);
    if (!c.is_split() || !can_place(c, cluster, candidate.launched_clusters(), sm_count))
        return cost_of(candidate).k_cycles;
    const Mma mma(p, candidate.swap_ab);
    const auto rows = static_cast<double>(rows_of_gpc(c, cluster, ceil_div(mma.m, c.tile_m * c.cluster_m),
                                                      ceil_div(mma.n, c.tile_n * c.cluster_n)));
    const double slices =
        c.is_global() ? std::max(1.0, usual_gpc / static_cast<double>(candidate.clusters * c.ctas()))
                      : candidate.split;
    const double port = rows * slices * tile_k * 2.0 / gpc_port;
    return std::pow(std::pow(cost_of(candidate).placed, placed_norm) + std::pow(port, placed_norm),
                    1.0 / placed_norm);
}

double compute_us(const Problem& p, const Config& c, const Candidate& candidate, const Placement& at,
                  double effort, int sm_count)
{
    const double k_tiles = std::ceil(std::ceil(static_cast<double>(p.k) / tile_k) / candidate.split);
    const double drift = !candidate.stream_k                ? 0.0
                         : c.schedule == Schedule::PingPong ? drift_ping_pong
                                                            : drift_cooperative;
    const double busy =
        at.crowded * k_tiles *
        (candidate.pdl_off ? placed_cycles(p, c, candidate, sm_count) : cost_of(candidate).k_cycles) *
        (1.0 + drift);
    const double chain =
        at.waves * k_tiles * cost_of(candidate).chain * (1.0 + crowding * (at.filled - 0.5));
    const double flops = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * static_cast<double>(p.k);
    return std::max(busy, chain) * effort / clock_rate(flops);
}

// Sums to leave, and those of others to take.
double shares_of_stream(const Config& c, const Candidate& candidate, const Placement& at)
{
    const double others = std::max(1.0, 1.0 / at.waves);
    return candidate.stream_k ? stream_latency + others * c.tile_m * c.tile_n * 4.0 / stream_read : 0.0;
}

double persistent_cost(const Config& c, const Candidate& candidate, const Placement& at)
{
    const double shown = c.schedule == Schedule::PingPong ? overlap_ping_pong : overlap_cooperative;
    const double stores = cost_of(candidate).store_us * (1.0 + shown * std::max(at.waves - 1.0, 0.0));
    return launch_persistent + stores + shares_of_stream(c, candidate, at);
}

double sum_of_slices(const Config& c, const Candidate& candidate)
{
    const double tile = c.tile_m * c.tile_n / 16384.0, slices = candidate.split;
    return c.is_global()         ? global_latency + global_tile * tile
           : candidate.split > 1 ? split_latency + split_store * tile * (slices - 1.0) / slices
                                 : 0.0;
}

double split_cost(const Problem& p, const Config& c, const Candidate& candidate, const Placement& at)
{
    const double slices = candidate.split, share = std::min(1.0, 1.0 / slices + 0.2);
    const double k_tiles = std::ceil(std::ceil(static_cast<double>(p.k) / tile_k) / slices);
    return launch_split + launch_full * at.filled + fill_pipeline * std::min(k_tiles, 8.0) / 8.0 +
           cost_of(candidate).store_us * share * std::min<double>(at.load, c.ctas_per_sm) +
           sum_of_slices(c, candidate) + extra_wave * (at.waves - 1.0);
}

// What short products of a batch do not hide of their epilogues, and of the way to the next tile.
double wave_of_batch(const Problem& p, const Config& c, const Candidate& candidate)
{
    constexpr double of_split = 1.2, of_crowded = 1.53, of_split_tile = 0.945;
    constexpr double of_persistent = 0.412, of_persistent_tile = 0.483;
    constexpr double of_element = 0.053, shown = 0.7;  // stored one by one, of a thread
    const double tile = c.tile_m * c.tile_n / 16384.0;
    const int consumers = c.schedule == Schedule::PingPong ? 1 : c.consumers;
    const double elements = is_element_output(p)
                                ? of_element * c.tile_m * c.tile_n / (128.0 * consumers * candidate.split)
                                : 0.0;
    return c.is_split() ? (c.ctas_per_sm == 4 ? of_crowded : of_split) + of_split_tile * tile + elements
                        : of_persistent + of_persistent_tile * tile + shown * elements;
}

// What a batch takes beside that, the operands and the multiplications.
double once_a_batch(const Config& c, const Candidate& candidate, const Placement& at)
{
    constexpr double start = 0.518, persistent = 0.56, streaming = 0.482, slices = 0.353, sum = 0.224;
    constexpr double idle = 1.27;  // of a start after the kernels in front
    const double store = c.is_split() ? 0.0 : persistent * cost_of(candidate).store_us;
    const double parts =
        candidate.split > 1 ? slices * std::sqrt(candidate.split) + sum * sum_of_slices(c, candidate) : 0.0;
    return start + store + streaming * shares_of_stream(c, candidate, at) + parts +
           (candidate.pdl_off ? idle : 0.0);
}

// With constants of its own, from 5,580 measurements of 300 batches on an H100 (h100_sm90_batches.txt.xz):
// of 466 light ones choices cost 3.4 % over the fastest of 16 ways, with those of single products 9.3, with
// the network 9.2. Of 181 heavy ones the network's cost 2.0 %, these 3.9.
double predict_low_intensity_batch(const Problem& p, const Config& c, const Candidate& candidate,
                                   const Placement& at, double compute, double from_memory, double from_l2)
{
    constexpr double of_memory = 1.249, of_l2 = 1.714, batch_norm = 1.566;
    const double legs[] = {compute, of_memory * from_memory, of_l2 * from_l2,
                           at.waves * wave_of_batch(p, c, candidate)};
    double sum = 0;
    for (const double leg : legs)
        sum += std::pow(leg, batch_norm);
    return once_a_batch(c, candidate, at) + std::pow(sum, 1.0 / batch_norm);
}

// CTAs of the next kernel that start at once spread over all SMs. In one long wave of CTAs that
// fill an SM each it pays to wait: those that find no place would start one by one.
Pdl pdl_of(const Config& c, const Placement& at, int64_t k_tiles)
{
    const bool one_long_wave = c.is_split() && c.ctas_per_sm == 1 && at.filled > 0.5 && at.waves == 1.0;
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
    constexpr double heavy = 140;  // flops a byte
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    return p.batch > 1 && m * n * k < heavy * (m * k + n * k + m * n);
}

int64_t Candidate::launched_clusters() const { return clusters * configs[kernel].clusters_per_tile(split); }

int64_t clusters_held(int ctas_per_sm, int cluster, int sm_count)
{
    return std::max(1, held[ctas_per_sm - 1][cluster - 1] * sm_count / max_remapped_clusters);
}

Placement place(const Config& c, const Candidate& candidate, int sm_count)
{
    const auto clusters = static_cast<double>(candidate.launched_clusters());
    const int cluster = c.cluster_ctas(candidate.split);
    const double ctas = clusters * cluster, sms = sm_count, places = sms * c.ctas_per_sm;
    const double filled = std::min(1.0, ctas / places);
    if (!c.is_split()) {
        const double waves =
            clusters / static_cast<double>(clusters_held(c.ctas_per_sm, c.ctas(), sm_count));
        const double load = candidate.stream_k ? waves : std::ceil(waves);
        return {ctas, load, load, load, filled};
    }
    const auto at_once = static_cast<double>(clusters_held(c.ctas_per_sm, cluster, sm_count));
    const double full = std::floor(clusters / at_once);
    const double rest = (clusters - full * at_once) * cluster;
    const double load = full * c.ctas_per_sm + std::ceil(rest / sms);
    const double more = ctas <= places ? packing[cluster] * std::max(0.0, c.ctas_per_sm - load) : 0.0;
    return {ctas, std::ceil(clusters / at_once), load, load + more, filled};
}

StreamShape stream_shape(const Config& c, int64_t tiles, int64_t k, int sm_count)
{
    const int64_t at_once = clusters_held(c.ctas_per_sm, c.ctas(), sm_count), k_tiles = ceil_div(k, tile_k);
    const int64_t streamed = tiles < at_once ? tiles : tiles % at_once == 0 ? 0 : at_once + tiles % at_once;
    return {streamed, std::min(at_once, std::max<int64_t>(1, tiles * k_tiles / shortest_run))};
}

Prediction predict(const Problem& p, const Config& c, const Candidate& candidate, int sm_count,
                   double limit)
{
    const Placement at = place(c, candidate, sm_count);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
    const Mma mma(p, candidate.swap_ab);
    const double rows_a = candidate.swap_ab ? n : m, rows_b = candidate.swap_ab ? m : n;
    const Reading a =
        read_operand(mma.a, p, rows_a, c.tile_m, std::ceil(rows_b / (c.tile_n * c.cluster_n)));
    const Reading b =
        read_operand(mma.b, p, rows_b, c.tile_n, std::ceil(rows_a / (c.tile_m * c.cluster_m)));
    const double operands = a.bytes + b.bytes, output = 2.0 * static_cast<double>(p.batch) * m * n;
    const double again = reread * ((a.again ? a.bytes : 0.0) + (b.again ? b.bytes : 0.0));
    double from_memory = (operands + output + a.from_panels + b.from_panels + again) / memory;
    if (operands > l2_resident)
        from_memory = std::max(from_memory, operands * at.crowded / at.ctas / memory_of_one);
    const double from_l2 = (a.from_l2 * (c.cluster_n > 1 ? multicast : 1.0) +
                            b.from_l2 * (c.cluster_m > 1 ? multicast : 1.0)) /
                               l2 +
                           wait_for_short_lines(p, mma.a, std::ceil(rows_b / (c.tile_n * c.cluster_n))) +
                           wait_for_short_lines(p, mma.b, std::ceil(rows_a / (c.tile_m * c.cluster_m)));
    const double costs_more =
        (c.is_split() ? split_cost(p, c, candidate, at) : persistent_cost(c, candidate, at)) +
        cluster_latency[c.cluster_ctas(candidate.split)] + (c.ctas() > 1 ? multicast_latency : 0.0) +
        (candidate.pdl_off ? pdl_off_latency : 0.0);
    const Pdl pdl =
        candidate.pdl_off ? Pdl::Off : pdl_of(c, at, ceil_div(ceil_div(p.k, tile_k), candidate.split));
    if (is_low_intensity_batch(p)) {
        const double compute = compute_us(p, c, candidate, at, effort_of(c, major_of(mma.b)), sm_count);
        return {predict_low_intensity_batch(p, c, candidate, at, compute, from_memory, from_l2), pdl};
    }
    double at_least = costs_more + std::max(from_memory, from_l2);
    if (at_least >= limit)
        return {at_least, pdl};
    const double effort = effort_of(c, major_of(mma.b));
    const double compute = compute_us(p, c, candidate, at, effort, sm_count);
    at_least = std::max(at_least, costs_more + compute);
    if (at_least >= limit)
        return {at_least, pdl};
    const double sum = std::pow(compute, norm) + std::pow(from_memory, norm) + std::pow(from_l2, norm);
    return {costs_more + std::pow(sum, 1.0 / norm), pdl};
}

}  // namespace hg::sm90
