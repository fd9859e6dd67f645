// The cost model of sm120. Three things bound a kernel: the K tiles on the fullest SM, the bytes from
// memory, and the bytes from L2. They do not overlap perfectly, so they are added by a norm. A launch comes
// on top. Rates of 12.x are from data sheets, that of L2 is a guess: no such device was measured.
#include "arch/common/host/pack.hpp"
#include "arch/sm120/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace hg::sm120 {
namespace {

// Of one device; bytes and cycles a microsecond.
struct Rates {
    double mma;  // flops a cycle of one SM, fp32 accumulators
    double cycles, memory, l2;
};

Rates rates_of(const Device& device)
{
    if (device.cc == 90)
        return {2600.0, 1700.0, 4.2e6, 8.0e6};
    if (device.cc == 121)
        return {1024.0, 2400.0, 0.24e6, 2.0e6};
    return {512.0, 2400.0, 1.6e6, 5.0e6};  // GeForce; others multiply twice as fast
}

constexpr double shared_bytes = 128.0;  // a cycle
constexpr double step_latency = 110.0;  // cycles of 16 K that one CTA alone does not hide
constexpr double launch_us = 2.0, norm = 2.5;
constexpr double store_cycles = 0.15;  // an element of D, of a CTA that is alone on its SM

// Cycles of a K tile on a full SM: the mma, or the bytes of shared memory that TMA writes and warps read.
double busy_cycles(const Config& c, const Rates& rates)
{
    const double multiply = 2.0 * c.m * c.n * c.k / rates.mma;
    const double bytes = c.stage_bytes() + 2.0 * c.k * c.consumers() * (c.warp_m() + c.warp_n());
    return std::max(multiply, bytes / shared_bytes);
}

}  // namespace

double predict(const Problem& p, const Device& device, const Config& c, int64_t tiles, int sm_count)
{
    const Rates rates = rates_of(device);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k),
               batch = static_cast<double>(p.batch), count = static_cast<double>(tiles);
    const double k_tiles = std::ceil(k / c.k);
    const double load = std::ceil(count / sm_count), waves = std::ceil(load / c.ctas_per_sm);
    const double busy = busy_cycles(c, rates), one_cta = busy + step_latency * c.k / 16;
    const double store = store_cycles * c.m * c.n;
    const double compute =
        std::max(load * k_tiles * busy, waves * (k_tiles * one_cta + store)) / rates.cycles;
    const double bytes = 2.0 * batch * (k * (m + n) + m * n) / rates.memory;
    const double from_l2 = count * k_tiles * c.stage_bytes() / rates.l2;
    return launch_us +
           std::pow(std::pow(compute, norm) + std::pow(bytes, norm) + std::pow(from_l2, norm), 1.0 / norm);
}

}  // namespace hg::sm120
