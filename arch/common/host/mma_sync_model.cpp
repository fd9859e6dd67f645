// Three things bound a kernel: the K tiles on the fullest SM (by mma.sync or by shared memory, whichever
// takes longer), the bytes from memory, and the bytes from L2. They do not overlap perfectly: the model
// takes a p-norm of the three. A launch, and the sum over slices of K, come on top. Constants are cycles,
// bytes and shares of a device's rates, so that they hold for cards that nobody has measured; they were
// fitted to 6,206 times on an H100 (tests/bench/results/h100_mma_sync_candidates.txt.xz).
#include "arch/common/host/mma_sync_model.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/repack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace hg {
namespace {

// Of one device; flops a cycle of one SM, bytes and cycles a microsecond.
struct Rates {
    double mma, cycles, memory, l2;
};

// Flops a cycle of one SM with fp32 accumulators, sustained MHz, GB/s where the driver does not say, bytes
// from L2 a cycle of one SM when all read. Those of 9.0 were fitted with the constants below; the others
// are from data sheets (MHz: about the boost clock), and their L2 is a guess. The device is not asked for
// its clock: boards of one model differ in it, and their choices must not.
struct Capability {
    int cc;
    double mma, mhz, gb, l2;
};
constexpr Capability capabilities[] = {
    {80, 2048, 1410, 1555, 40}, {86, 1024, 1700, 600, 20},    {87, 2048, 1300, 205, 20},
    {89, 1024, 2500, 864, 17},  {90, 3250, 1755, 4800, 39.7}, {120, 1024, 2400, 1792, 17},
    {121, 1024, 2400, 273, 20}, {0, 2048, 1800, 4000, 40},
};

// GeForce cards accumulate in fp32 at half the rate of their professional siblings.
bool is_geforce(const Device& device) { return std::strstr(device.name, "GeForce") != nullptr; }

Rates rates_of(const Device& device)
{
    const Capability& c = *std::ranges::find_if(
        capabilities, [&](const Capability& row) { return row.cc == device.cc || row.cc == 0; });
    constexpr double of_memory = 0.790;  // that is sustained
    const double bytes =
        device.memory_bandwidth > 0 ? static_cast<double>(device.memory_bandwidth) * 1e-6 : c.gb * 1e3;
    return {c.mma == 1024 && is_geforce(device) ? 512 : c.mma, c.mhz, of_memory * bytes,
            c.l2 * c.mhz * device.sm_count};
}

constexpr double flops_per_mma = 2.0 * 16 * 8 * 16;
constexpr double shared_bytes = 128;                     // of shared memory, a cycle
constexpr double read_share = 0.81, write_share = 0.90;  // of its cycles, for fragments and for stages
constexpr double memory_latency = 1594;                  // cycles until what a stage asks for has landed
constexpr double store_cycles = 0.120;                   // an element of D
constexpr double cta_cycles = 4260;  // a further round of CTAs on an SM: to start, load and store
constexpr double slices_us = 0.46;   // counting, and reading the sums again
constexpr double sum_bytes = 6.8;    // a cycle that a warp of the last slice reads
constexpr double overlap = 4.30;     // p of that norm: 1 if nothing overlapped, infinite if all did

// What the norm of three numbers is at least: their 8-norm, for which no power is needed, less more than
// rounding could add to that.
double greatest_norm(std::initializer_list<double> numbers)
{
    static_assert(overlap < 8);
    double sum = 0;
    for (const double x : numbers)
        sum += x * x * (x * x) * (x * x * (x * x));
    return (1 - 1e-9) * std::sqrt(std::sqrt(std::sqrt(sum)));
}

// Threads that an SM holds.
int threads_of_sm(const Device& device)
{
    if (device.cc == 107)
        return 1024;
    return device.cc == 80 || device.cc / 10 == 9 || device.cc / 10 == 10 ? 2048 : 1536;
}

}  // namespace

int count_resident_ctas(const Device& device, int smem_bytes, int threads, int warp_m, int warp_n)
{
    constexpr int reserved = 1024;  // of a CTA, and of an SM
    const int registers = std::min(256, warp_m * warp_n / 32 + (warp_m + warp_n) / 2 + 40);
    const int by_smem = (device.smem_per_block + reserved) / (smem_bytes + reserved);
    return std::max(1, std::min({by_smem, 65536 / (registers * threads), threads_of_sm(device) / threads}));
}

double predict_copies(const Device& device, const Factors& f, double bytes, int sm_count, bool limited)
{
    constexpr double fixed_us = 6.1, passes = 1.85;  // over memory: read and written
    // What a CTA has under way, over the latency of memory.
    constexpr double cta_bytes_per_us = 16.0 * 2 * repack_rows * repack_threads / 1.2;
    const auto ctas = static_cast<double>(max_copying_ctas(sm_count, limited));
    return f.fixed * fixed_us +
           passes * bytes / std::min(rates_of(device).memory / f.memory, ctas * cta_bytes_per_us);
}

double predict_mma_sync(const Problem& p, const Device& device, const MmaSyncKernel& c,
                        const MmaSyncCosts& costs, const Factors& f, int64_t tiles, int64_t split,
                        int sm_count, double limit)
{
    const Rates rates = rates_of(device);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k),
               columns = static_cast<double>(p.columns()), batch = static_cast<double>(p.batch),
               slices = static_cast<double>(split), ctas = static_cast<double>(tiles) * slices;
    const double elements = static_cast<double>(c.tile_m) * c.tile_n,
                 stage_bytes = 2.0 * (c.tile_m + c.tile_n) * c.tile_k;
    const double k_tiles = std::ceil(k / c.tile_k), of_slice = std::ceil(k_tiles / slices);
    const double load = std::ceil(ctas / sm_count), full = std::floor(load / c.ctas_per_sm);
    const double rest = load - full * c.ctas_per_sm;
    const double launches = c.a_launch_a_wave ? load : 1.0;
    // Cycles of a K tile: on a full SM, and at least, however few CTAs an SM has.
    const double flops = 2.0 * elements * c.tile_k, vectors = (c.tile_m + c.tile_n) * c.tile_k / 8.0;
    const double multiply = f.multiply * flops / rates.mma + costs.mma_cycles * flops / flops_per_mma;
    const double fragment_bytes = 2.0 * c.warps * (c.warp_m + c.warp_n) * c.tile_k;
    const double shared = (read_share * fragment_bytes + write_share * stage_bytes) / shared_bytes;
    const double busy = std::max(multiply, shared) + costs.vector_cycles * vectors;
    const double least = std::max(busy + costs.step_cycles * c.tile_k / 16 + costs.tile_cycles,
                                  memory_latency / (c.stages - 1));
    const double waves =
        full * std::max(c.ctas_per_sm * busy, least) + (rest > 0 ? std::max(rest * busy, least) : 0.0);
    const double store = store_cycles * elements * (c.persistent ? 1.0 : load);
    const double starts = c.persistent ? 0.0 : cta_cycles * (full + (rest > 0 ? 1.0 : 0.0) - 1.0);
    const double compute = f.cycles * (of_slice * waves + store + starts) / rates.cycles;
    const double memory = f.memory * 2.0 * batch * (k * (m + n) + m * columns) / rates.memory;
    const double from_l2 = f.l2 * static_cast<double>(tiles) * k_tiles * stage_bytes / rates.l2;
    const double sum =
        split > 1 ? slices_us + 4.0 * slices * elements / (sum_bytes * c.warps * rates.cycles) : 0.0;
    const double once = f.fixed * (launches * costs.launch_us + sum);
    if (once + greatest_norm({compute, memory, from_l2}) >= limit)
        return std::numeric_limits<double>::infinity();
    const double bound = std::pow(
        std::pow(compute, overlap) + std::pow(memory, overlap) + std::pow(from_l2, overlap), 1 / overlap);
    return once + bound;
}

}  // namespace hg
