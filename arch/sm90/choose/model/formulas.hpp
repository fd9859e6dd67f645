// The formulas of the cost model, for candidates in double and for eight kernels in Lanes.
//
// Three things bound a kernel: the K tiles on the fullest SM, the bytes from memory, and the bytes from L2.
// They do not overlap perfectly, so they are added by a norm, to which launch, epilogue and reduction come.
// The constants were fitted to sweeps on an H200 (README.md).
#pragma once

#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/model/lanes.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <string_view>

namespace hg::sm90::formulas {

// A row of costs.def.
struct Cost {
    std::string_view name;
    int k_cycles, chain, placed;  // cycles of a K tile: on a full SM, alone on an SM, placed by GPC
    double store_us;              // of an epilogue
};

#define COST(name, k_cycles, chain, placed, store_us) {#name, k_cycles, chain, placed, store_us},
constexpr Cost measured[] = {
#include "arch/sm90/choose/model/costs.def"
};
#undef COST

// By kernel; one that was not measured costs what the nearest kernel does.
constexpr auto costs = entries_by_kernel(measured, Missing::Nearest);

constexpr const Cost& cost_of(int kernel) { return measured[costs[kernel]]; }

// Microseconds.
constexpr double launch_persistent = 1.35, launch_split = 1.36;
constexpr double launch_full = 0.591;     // added where a split-K kernel fills the device
constexpr double fill_pipeline = -0.371;  // of split-K kernels, with eight K tiles or more
constexpr double split_latency = 0.309, split_store = 5.3, extra_wave = 1.72;
constexpr double pdl_off_latency = 0.981;
constexpr double stream_latency = 5.55;
constexpr double global_latency = 2.0, global_tile = 3.5, global_slice = 0.13;  // of many slices
// Bytes a microsecond: of memory, for all SMs and for one; of L2, for aligned rows; of stream-K's sums.
constexpr double memory = 4.8e6, memory_of_one = 105.0e3, l2 = 44.6e6, stream_read = 75.6e3;
// Factors.
constexpr double misaligned_rows = 5.0;  // added to the bytes from L2, times misalignment()
constexpr double multicast = 0.953;      // of bytes from L2 that multicast brings to several CTAs
constexpr double reread = 0.292;         // of the first read of bytes that several CTAs read
// Share of its bytes added for an MN-major operand in tiles of one 128-byte panel; less for wider tiles.
constexpr double narrow_panel = 0.0186;
// Microseconds of L2 for a CTA's K tile of a narrow operand; the first ones cost as if there were more.
constexpr double narrow_k_tile = 2e-3;
constexpr double first_narrow_k_tiles = 8;
constexpr double shown_cooperative = 0.772, shown_ping_pong = 0.0859;  // share of epilogues not hidden
constexpr double drift_cooperative = 0.175, drift_ping_pong = 0.132;   // stream-K: fewer hits in L2
constexpr double crowding = 0.219;  // of `chain`, from an empty to a full device
constexpr double gpc_port = 390;    // bytes a cycle from L2 to all SMs of a GPC
constexpr double placed_norm = 4.0;
constexpr double flops_a_cycle = 4096;  // of an SM
constexpr double clock_rate = 1755.0;   // cycles a microsecond
constexpr double norm = 2.39;
constexpr double l2_resident = 4e6;                                     // bytes
constexpr double of_memory = 1.249, of_l2 = 1.714, batch_norm = 1.566;  // of low-intensity batches

constexpr double least_cluster_latency = *std::ranges::min_element(cluster_latency);

// By what factor a K tile takes longer because an N-major B is read in whole panels: the square of that by
// which panels that it does not fill make a stage larger.
constexpr double panel_effort(const Config& c, Major b)
{
    const double bytes = a_bytes(c) + b_bytes(c, b), narrow = a_bytes(c) + b_bytes(c, Major::K);
    return bytes / narrow * (bytes / narrow);
}

// KernelNumbers, and what the model knows of the kernels: their Cost, panel_effort(), Factors.
template <typename Real>
struct ModelNumbers : KernelNumbers<Real> {
    Real k_cycles, chain, placed, store_us;
    Real effort;
    bool is_calibrated;  // else all these are 1:
    Real multiply, cycles, memory, l2, fixed;
};

template <typename Real>
struct Traffic {
    double operands;            // bytes
    Real from_memory, from_l2;  // microseconds; not counted here: that few SMs reach less memory
};

template <typename Real>
HGEMM_INLINE Traffic<Real> traffic_of(const ModelNumbers<Real>& c, const Sides& sides,
                                      const ProblemNumbers& p)
{
    const auto& [a, b] = sides;
    // CTAs that read each byte.
    const Real readers_a = ceil_of(b.rows / (c.tile_n * c.cluster_n)),
               readers_b = ceil_of(a.rows / (c.tile_m * c.cluster_m));
    const Real panels_a = a.is_mn ? narrow_panel * (a.bytes * span_elements / c.tile_m) : Real(0.0),
               panels_b = b.is_mn ? narrow_panel * (b.bytes * span_elements / c.tile_n) : Real(0.0);
    const Real again = reread * (select(readers_a <= Real(1.0), Real(0.0), Real(a.bytes)) +
                                 select(readers_b <= Real(1.0), Real(0.0), Real(b.bytes)));
    const Real shared_a = select(c.cluster_n <= Real(1.0), Real(1.0), Real(multicast)),
               shared_b = select(c.cluster_m <= Real(1.0), Real(1.0), Real(multicast));
    // Microseconds that CTAs wait for a narrow operand: each requests all of it, K by K.
    const double k_tiles = p.k_tiles[1] + first_narrow_k_tiles;
    const Real wait_a = a.is_narrow ? narrow_k_tile * readers_a * k_tiles : Real(0.0),
               wait_b = b.is_narrow ? narrow_k_tile * readers_b * k_tiles : Real(0.0);
    const double operands = a.bytes + b.bytes;
    return {
        operands, (operands + p.output + panels_a + panels_b + again) / memory,
        c.l2 *
            ((a.bytes * readers_a * a.weight * shared_a + b.bytes * readers_b * b.weight * shared_b) / l2 +
             wait_a + wait_b)};
}

// `k_cycles`: of a K tile on a full SM.
template <typename Real>
HGEMM_INLINE Real compute_us(const ModelNumbers<Real>& c, const Way<Real>& way,
                             const Occupancy<Real>& occupancy, const Real& k_cycles)
{
    const double drift = !way.stream_k                      ? 0.0
                         : c.schedule == Schedule::PingPong ? drift_ping_pong
                                                            : drift_cooperative;
    const Real busy = occupancy.crowded * way.k_tiles * k_cycles * (1.0 + drift);
    const Real chain =
        occupancy.waves * way.k_tiles * c.chain * (1.0 + crowding * (occupancy.filled - 0.5));
    const Real cycles = greater(busy, chain) * c.effort;
    if (!c.is_calibrated)
        return cycles / clock_rate;
    const Real instructions =
        occupancy.crowded * way.k_tiles * 2.0 * c.tile_m * c.tile_n * tile_k / flops_a_cycle;
    return c.cycles *
           greater(cycles + (c.multiply - 1.0) * instructions, lesser(c.multiply, Real(1.0)) * cycles) /
           clock_rate;
}

// A cluster leaves its partial sums, and the fix-up reads those of the others.
template <typename Real>
HGEMM_INLINE Real stream_k_fixup_us(const KernelNumbers<Real>& c, const Way<Real>& way,
                                    const Occupancy<Real>& occupancy)
{
    if (!way.stream_k)
        return 0.0;
    const Real others = greater(Real(1.0), 1.0 / occupancy.waves);
    return stream_latency + others * c.tile_m * c.tile_n * 4.0 / stream_read;
}

template <typename Real>
HGEMM_INLINE Real persistent_overhead_us(const ModelNumbers<Real>& c, const Way<Real>& way,
                                         const Occupancy<Real>& occupancy)
{
    const double shown = c.schedule == Schedule::PingPong ? shown_ping_pong : shown_cooperative;
    const Real stores = c.store_us * (1.0 + shown * greater(occupancy.waves - 1.0, Real(0.0)));
    return launch_persistent + stores + stream_k_fixup_us(c, way, occupancy);
}

template <typename Real>
HGEMM_INLINE Real reduction_us(const KernelNumbers<Real>& c, const Way<Real>& way)
{
    const Real tile = c.tile_m * c.tile_n / 16384.0;
    if (c.is_global())
        return global_latency + global_tile * tile +
               global_slice * greater(way.slices - double{few_slices}, Real(0.0));
    return select(way.slices <= Real(1.0), Real(0.0),
                  split_latency + split_store * tile * (way.slices - 1.0) / way.slices);
}

template <typename Real>
HGEMM_INLINE Real split_k_overhead_us(const ModelNumbers<Real>& c, const Way<Real>& way,
                                      const Occupancy<Real>& occupancy)
{
    const Real share = lesser(Real(1.0), 1.0 / way.slices + 0.2);
    return launch_split + launch_full * occupancy.filled +
           fill_pipeline * lesser(way.k_tiles, Real(8.0)) / 8.0 +
           c.store_us * share * lesser(occupancy.load, c.ctas_per_sm) + reduction_us(c, way) +
           extra_wave * (occupancy.waves - 1.0);
}

// Microseconds between two waves of a low-intensity batch: what its short GEMMs do not hide of epilogues
// and of the way to the next tile.
template <typename Real>
HGEMM_INLINE Real batch_wave_us(bool by_element, const KernelNumbers<Real>& c, const Way<Real>& way)
{
    constexpr double of_split = 1.2, of_crowded = 1.53, of_split_tile = 0.945;
    constexpr double of_persistent = 0.412, of_persistent_tile = 0.483;
    constexpr double of_element = 0.053, shown = 0.7;  // stores element by element, of one thread
    const Real tile = c.tile_m * c.tile_n / 16384.0;
    Real elements = 0.0;
    if (by_element)
        elements = of_element * c.tile_m * c.tile_n / (128.0 * c.consumers * way.slices);
    if (c.is_split())
        return select(Real(4.0) <= c.ctas_per_sm, Real(of_crowded), Real(of_split)) + of_split_tile * tile +
               elements;
    return of_persistent + of_persistent_tile * tile + shown * elements;
}

// Microseconds that a low-intensity batch takes once: launch, fix-up, reduction.
template <typename Real>
HGEMM_INLINE Real batch_overhead_us(const ModelNumbers<Real>& c, const Way<Real>& way,
                                    const Occupancy<Real>& occupancy)
{
    constexpr double start = 0.518, persistent = 0.56, streaming = 0.482, slices = 0.353, sum = 0.224;
    constexpr double idle = 1.27;  // with pdl_off
    const Real store = c.is_split() ? Real(0.0) : persistent * c.store_us;
    const Real parts = select(way.slices <= Real(1.0), Real(0.0),
                              slices * root_of(way.slices) + sum * reduction_us(c, way));
    return start + store + streaming * stream_k_fixup_us(c, way, occupancy) + parts +
           (way.pdl_off ? idle : 0.0);
}

// Microseconds: a norm of all but `overhead`, which is added.
template <typename Real>
struct Parts {
    Real overhead, compute, memory, l2;
    Real waves;  // between waves, of low-intensity batches
};

// Low-intensity batches have constants of their own, from measurements on an H100: choices cost 3.4 % over
// the fastest candidate, 9 % with the network or the constants of single problems. EXPERIMENTS.md#batches.
template <typename Real>
HGEMM_INLINE Parts<Real> parts_of(const ModelNumbers<Real>& c, const Traffic<Real>& traffic,
                                  const ProblemNumbers& p, const Way<Real>& way,
                                  const Occupancy<Real>& occupancy, const Real& k_cycles)
{
    const Real compute = compute_us(c, way, occupancy, k_cycles);
    Real from_memory = traffic.from_memory;
    if (traffic.operands > l2_resident)
        from_memory =
            greater(from_memory, traffic.operands * occupancy.crowded / occupancy.ctas / memory_of_one);
    if (c.is_calibrated)
        from_memory = from_memory * c.memory;
    if (p.low_intensity)
        return {c.fixed * batch_overhead_us(c, way, occupancy), compute, of_memory * from_memory,
                of_l2 * traffic.from_l2, c.fixed * occupancy.waves * batch_wave_us(p.by_element, c, way)};
    const Real overhead = c.fixed * ((c.is_split() ? split_k_overhead_us(c, way, occupancy)
                                                   : persistent_overhead_us(c, way, occupancy)) +
                                     way.latency + (way.pdl_off ? pdl_off_latency : 0.0));
    return {overhead, compute, from_memory, traffic.from_l2, 0.0};
}

}  // namespace hg::sm90::formulas
