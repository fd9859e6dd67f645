// Three things bound a kernel, and are added with a norm since they do not overlap perfectly: the k tiles
// on the fullest multiprocessor, the bytes of memory, the bytes that L2 delivers. Launch, epilogues and
// the sum over slices come on top. Constants: fitted to sweeps on an H200, see kernels.def.
#include "arch/sm90/model.hpp"

#include "arch/common/pack.hpp"

#include <algorithm>
#include <cmath>

namespace hg::sm90 {
namespace {

constexpr double launch_persistent = 1.84, launch_split = 1.78, launch_alone = 0.76;  // us
constexpr double memory = 4.37e6, memory_of_one = 6.0e4, l2 = 17.9e6;                 // bytes/us
constexpr double reread = 0.13;  // cost of bytes that several CTAs read, of their first read
constexpr double split_latency = 1.07, split_store = 1.5, extra_wave = 1.2;  // us
constexpr double overlap_cooperative = 0.62, overlap_ping_pong = 0.38;       // of an epilogue is not hidden
constexpr double norm = 2.5;
constexpr double packing = 0.28;     // clusters of more than two crowd on few multiprocessors
constexpr double l2_resident = 4e6;  // bytes

// Clusters of 1 to 8 CTAs that 132 multiprocessors hold, by CTAs a multiprocessor (the driver's answer).
constexpr int held[4][8] = {
    {132, 66, 39, 30, 22, 17, 15, 15},
    {264, 132, 79, 62, 47, 39, 32, 30},
    {396, 198, 124, 92, 69, 62, 47, 45},
    {528, 264, 163, 124, 94, 79, 69, 62},
};

double clusters_held(const Config& c, int cluster, int sm_count)
{
    return std::max(1.0, std::floor(held[c.residents - 1][cluster - 1] * (sm_count / 132.0)));
}

// How the CTAs fall on the multiprocessors.
struct Placement {
    double ctas, waves;
    double load;  // CTAs that the fullest one runs in all
};

Placement place(const Config& c, const Way& way, int sm_count)
{
    const auto clusters = static_cast<double>(way.clusters);
    const double ctas = clusters * c.cluster * way.split, sms = sm_count;
    if (!c.is_split()) {
        const double waves = std::ceil(clusters * c.cluster / sms);
        return {ctas, waves, waves};
    }
    const int cluster = c.cluster * way.split;
    const double at_once = clusters_held(c, cluster, sm_count), full = std::floor(clusters / at_once);
    const double rest = (clusters - full * at_once) * cluster;
    double load = full * c.residents + std::ceil(rest / sms);
    if (cluster > 2 && c.residents > 1 && ctas <= sms * c.residents)
        load += packing * (c.residents - load);
    return {ctas, std::ceil(clusters / at_once), load};
}

// Cycles a microsecond: the clock falls a little under a long load.
double clock_rate(double flops)
{
    const double us = std::max(flops / 800e6, 1.0);
    return 1755.0 - 93.0 * std::clamp(std::log(us / 8.0) / std::log(500.0 / 8.0), 0.0, 1.0);
}

double fixed_cost(const Config& c, const Way& way, const Placement& at)
{
    if (!c.is_split()) {
        const double shown = c.kind == Kind::PingPong ? overlap_ping_pong : overlap_cooperative;
        return launch_persistent + c.store_us * (1.0 + shown * (at.waves - 1.0));
    }
    const double slices = way.split;
    const double share = std::min(1.0, 1.0 / slices + 0.2);
    const double sum =
        way.split > 1 ? split_latency + split_store * (c.x * c.y / 16384.0) * (slices - 1.0) / slices : 0.0;
    return launch_split + c.store_us * share * std::min<double>(at.load, c.residents) + sum +
           extra_wave * (at.waves - 1.0);
}

}  // namespace

Prediction predict(const Problem& p, const Config& c, const Way& way, int sm_count)
{
    const Placement at = place(c, way, sm_count);
    const auto batch = static_cast<double>(p.batch), m = static_cast<double>(p.m),
               n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const double x_rows = way.swapped ? n : m, y_rows = way.swapped ? m : n;
    const double k_tiles = std::ceil(std::ceil(k / tile_k) / way.split);
    const double operands = 2.0 * batch * k * (m + n), output = 2.0 * batch * m * n;
    const double read_again =
        2.0 * batch * k * ((y_rows > c.y ? x_rows : 0.0) + (x_rows > c.x * c.cluster ? y_rows : 0.0));
    const double cycles = std::max(at.load * k_tiles * c.k_cycles, at.waves * k_tiles * c.chain);
    const double compute = cycles / clock_rate(2.0 * batch * m * n * k);
    double bytes = (operands + output + reread * read_again) / memory;
    if (operands > l2_resident)
        bytes = std::max(bytes, operands * at.load / at.ctas / memory_of_one);
    const double from_l2 =
        at.ctas * k_tiles * (c.x + static_cast<double>(c.y) / c.cluster) * 2.0 * tile_k / l2;
    const double busy =
        std::pow(std::pow(compute, norm) + std::pow(bytes, norm) + std::pow(from_l2, norm), 1.0 / norm);
    const double us = busy + fixed_cost(c, way, at);
    // In one long wave, CTAs that start while others end are placed unevenly; that costs more than the
    // launch.
    const double slots = static_cast<double>(sm_count) * c.residents;
    const bool alone = c.is_split() && us > 18.0 && at.ctas > 0.3 * slots && at.ctas <= slots;
    return {alone ? us + launch_alone : us, !alone};
}

}  // namespace hg::sm90
