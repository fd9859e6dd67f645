// The cost model of sm80. Three things bound a kernel: the K tiles on the fullest SM, the bytes from memory,
// and the bytes from L2. They do not overlap perfectly, so they are added by a norm. A launch, and the sum
// over slices of K, come on top. The constants of kernels are cycles and bytes; those of a device are its
// attributes and the rates of its compute capability, so that they hold for cards that nobody has measured.
#include "arch/common/host/pack.hpp"
#include "arch/sm80/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hg::sm80 {
namespace {

// Of one device; flops a cycle of one SM, bytes and cycles a microsecond.
struct Rates {
    double mma, cycles, memory, l2;
};

// GeForce cards accumulate in fp32 at half the rate of their professional siblings.
bool is_geforce(const Device& device) { return std::strstr(device.name, "GeForce") != nullptr; }

// flops a cycle of one SM with fp32 accumulators, MHz, GB/s where the driver does not say; data sheets, but
// for 9.0, which was measured.
struct Capability {
    int cc;
    double mma, mhz, gb;
};
constexpr Capability capabilities[] = {
    {80, 2048, 1410, 1555}, {86, 1024, 1700, 600},  {87, 2048, 1300, 205},  {89, 1024, 2500, 864},
    {90, 2600, 1755, 4100}, {120, 1024, 2400, 1792}, {121, 1024, 2400, 273}, {0, 2048, 1800, 4000},
};

Rates rates_of(const Device& device)
{
    const Capability& c = *std::ranges::find_if(
        capabilities, [&](const Capability& row) { return row.cc == device.cc || row.cc == 0; });
    constexpr double reached = 0.86;  // of the bandwidth by clock and bus: 2.88 of 3.35 TB/s on an H100
    const double memory = device.memory_bandwidth > 0
                              ? static_cast<double>(device.memory_bandwidth) * 1e-6 * reached
                              : c.gb * 1e3 * reached;
    constexpr double l2_bytes_a_cycle = 26;  // of one SM, when all read
    constexpr double sustained = 0.9;  // of the clock's maximum
    const double mhz = device.clock_khz > 0 ? device.clock_khz * 1e-3 * sustained : c.mhz;
    return {is_geforce(device) && c.mma == 1024 ? 512 : c.mma, mhz, memory,
            l2_bytes_a_cycle * mhz * device.sm_count};
}

constexpr double shared_bytes = 128.0;    // a cycle of one SM
constexpr double step_latency = 60.0;     // cycles of 16 K that one CTA alone does not hide
constexpr double tile_latency = 150.0;    // cycles of a K tile: barrier, and the first fragments of a stage
constexpr double fill_cycles = 1500.0;    // from the CTA's start to its first fragments
constexpr double store_cycles = 0.12;     // an element of D, of a CTA that is alone on its SM
constexpr double launch_us = 2.2, norm = 2.5;
constexpr double slices_us = 1.2;         // the last slice of a tile waits for its counter and reads the others

// CTAs that an SM has room for.
int ctas_per_sm(const Device& device, const Config& c, const KernelInfo& kernel)
{
    const int smem_per_sm = device.smem_per_block + 1024, smem = kernel.smem_bytes + 1024;
    const int accumulators = c.warp_m() * c.warp_n() / 32;
    const int registers = std::min(256, accumulators + 2 * (c.warp_m() + c.warp_n()) / 4 + 56);
    return std::max(1, std::min({smem_per_sm / smem, 65536 / (registers * c.threads()), 1536 / c.threads()}));
}

// Cycles of a K tile on a full SM: the mma, or the bytes of shared memory that are written and read.
double busy_cycles(const Config& c, const Rates& rates)
{
    const double multiply = 2.0 * c.m * c.n * c.k / rates.mma;
    const double bytes = c.stage_bytes() + 2.0 * c.k * c.warps() * (c.warp_m() + c.warp_n());
    return std::max(multiply, bytes / shared_bytes);
}

// Kernels that read element by element: whole waves of tiles, at a tenth of the speed of others.
double predict_general(const Problem& p, const Config& c, int64_t tiles, int sm_count)
{
    const double flops_a_cycle = c.m * c.n >= 128 * 128 ? 160.0 : 100.0;
    const double tile_cycles = 2.0 * c.m * c.n * static_cast<double>(p.k) / flops_a_cycle + 1500.0;
    constexpr double launch = 3.3, cycles = 1500.0;  // us, a us
    return launch + static_cast<double>(ceil_div(tiles, sm_count)) * tile_cycles / cycles;
}

}  // namespace

double predict(const Problem& p, const Device& device, const Candidate& candidate, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    if (c.general())
        return predict_general(p, c, candidate.tiles, sm_count);
    const Rates rates = rates_of(device);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k),
               batch = static_cast<double>(p.batch), tiles = static_cast<double>(candidate.tiles),
               split = static_cast<double>(candidate.split),
               k_tiles = std::ceil(std::ceil(k / c.k) / split);
    const double ctas = tiles * split, load = std::ceil(ctas / sm_count);
    const double resident = ctas_per_sm(device, c, kernels[candidate.kernel]);
    const double busy = busy_cycles(c, rates);
    const double alone = busy + step_latency * c.k / 16 + tile_latency;
    const double ends = fill_cycles + store_cycles * c.m * c.n;
    const double compute =
        std::max(load * k_tiles * busy + ends, std::ceil(load / resident) * (k_tiles * alone + ends)) /
        rates.cycles;
    const double memory = 2.0 * batch * (k * (m + n) + m * n) / rates.memory;
    const double from_l2 = tiles * std::ceil(k / c.k) * c.stage_bytes() / rates.l2;
    // The last slice of a tile reads the sums of all.
    const double sum_bytes = split > 1 ? 8.0 * ctas * c.m * c.n : 0.0;
    const double sum = split > 1 ? slices_us + sum_bytes / rates.l2 +
                                       split * c.m * c.n * 4.0 / (64.0 * rates.cycles) / resident
                                 : 0.0;
    return launch_us + sum +
           std::pow(std::pow(compute, norm) + std::pow(memory, norm) + std::pow(from_l2, norm), 1.0 / norm);
}

}  // namespace hg::sm80
