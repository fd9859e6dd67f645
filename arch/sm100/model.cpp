// Constants: architecture, or fitted to three published sets of B200 measurements: NVIDIA/tilus v0-v6 (T),
// "Modern GPU Programming for ML Systems" steps 4-9 (M), gau-nernst/learn-cuda v2-v7 (G). None was measured
// here.
#include "arch/sm100/model.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm100/kernels.hpp"
#include "src/plan/calibration.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hg::sm100 {
namespace {

constexpr double flops_a_cycle = 8192.0, read_bytes_a_cycle = 128.0;  // of an SM
constexpr double loaded_bytes_a_cycle = 110.0;                        // L2 to an SM; G v2, G v4
constexpr double load_latency = 1000.0;                               // cycles; M 4, M 7
constexpr double done_latency = 230.0;   // from the end of an MMA to a thread that waits for it; T v2
constexpr double start_cycles = 1500.0;  // of a CTA: barriers, tensor memory, first maps; G v4
constexpr double box_column = 16.0;      // cycles to store a column of an accumulator; M 8
constexpr double row_column = 25.0;      // G v5
constexpr double waited_column = 53.0;   // T v3
constexpr double launch_us = 2.0, reduction_us = 1.0;
constexpr double memory_of_one = 7.0e10;  // bytes a second, of one SM
constexpr double norm = 2.5;              // compute and memory overlap, but not perfectly

// Power lowers the clock: more so the busier the tensor cores are and the more shared memory they read.
// T v0-v6 publish the clock and how busy they were.
constexpr double idle_ghz = 1.89, ghz_busy = 0.387, ghz_a_read_byte = 0.00228;

}  // namespace

KTile k_tile(const Pipeline& p, const Factors& f)
{
    KTile t{};
    t.bytes = 2.0 * p.tile_k * (p.tile_m + p.tile_n) / p.cta_group;
    t.multiply = f.multiply * 2.0 * p.tile_m * p.tile_n * p.tile_k / p.cta_group / flops_a_cycle;
    t.load = f.l2 * t.bytes / loaded_bytes_a_cycle;
    t.read = 2.0 * p.tile_k * p.consumers() * (128.0 + static_cast<double>(p.tile_n) / p.cta_group) /
             read_bytes_a_cycle;
    const double wait = p.overlap == Overlap::Products ? 0.0 : done_latency;
    t.round = (load_latency + t.load + t.multiply + wait) / p.stages;
    t.cycles = p.overlap == Overlap::Nothing ? t.round * p.stages
                                             : std::max({t.multiply + wait, t.load, t.read, t.round});
    return t;
}

double store_cycles(const Pipeline& p)
{
    const double column = p.store == Store::Boxes  ? box_column
                          : p.store == Store::Rows ? row_column
                                                   : waited_column;
    return column * p.tile_n * p.consumers() / p.writers + done_latency;
}

Prediction predict_pipeline(const Pipeline& p, const Work& work, int sm_count, const Factors& f,
                            double limit)
{
    Prediction r{};
    const int64_t resident = std::max(1, sm_count / (p.cta_group * p.split));
    r.waves = (work.tiles + resident - 1) / resident;
    const double waves = static_cast<double>(r.waves), tiles = static_cast<double>(work.tiles);
    const double k_tiles = std::ceil(std::ceil(static_cast<double>(work.k) / p.tile_k) / p.split);
    const KTile tile_of_k = k_tile(p, f);
    const double start = start_cycles + load_latency + tile_of_k.load;
    const double starts = p.persistent ? 1.0 : waves;
    const double stores = p.persistent && p.accumulators > 1 ? 1.0 : waves;
    // A hidden epilogue still has to keep up with the main loop.
    const double main_loop = k_tiles * tile_of_k.cycles;
    const double tile = stores < waves ? std::max(main_loop, store_cycles(p)) : main_loop;
    r.cycles = waves * tile + starts * start + stores * store_cycles(p);
    const double ctas = tiles * p.cta_group * p.split;
    r.busy = ctas * k_tiles * tile_of_k.multiply / sm_count / r.cycles;
    r.ghz = idle_ghz - r.busy * (ghz_busy + ghz_a_read_byte * read_bytes_a_cycle * tile_of_k.read /
                                                tile_of_k.multiply);
    r.compute_us = f.cycles * r.cycles / r.ghz * 1e-3;
    r.memory_us = f.memory * 1e6 *
                  std::max((work.operand_bytes + work.output_bytes) / memory_rate,
                           work.operand_bytes / std::min<double>(ctas, sm_count) / memory_of_one);
    const double once = f.fixed * (launch_us + (p.split > 1 ? reduction_us : 0.0));
    // The norm is at least the greater of both, but for rounding.
    if (once + (1 - 1e-9) * std::max(r.compute_us, r.memory_us) >= limit) {
        r.us = std::numeric_limits<double>::infinity();
        return r;
    }
    r.us = once + std::pow(std::pow(r.compute_us, norm) + std::pow(r.memory_us, norm), 1.0 / norm);
    return r;
}

Pipeline pipeline_of(const Config& c, int split)
{
    const bool persistent = !c.is_split();
    Pipeline p{c.cta_group, c.tile_m,         c.tile_n,
               tile_k,      c.stages,         Overlap::Products,
               persistent,  c.accumulators(), persistent ? Store::Boxes : Store::Rows};
    p.split = p.writers = split;  // each slice stores a part of the tile
    return p;
}

double predict_candidate(const Problem& p, const Device& device, const Candidate& candidate, int sm_count,
                         double limit)
{
    const Config& c = configs[candidate.kernel];
    const auto batch = static_cast<double>(p.batch), m = static_cast<double>(p.m),
               n = static_cast<double>(p.n), k = static_cast<double>(p.k),
               columns = static_cast<double>(p.columns());
    const Work work{candidate.clusters, p.k, 2.0 * batch * k * (m + n),
                    static_cast<double>(bytes_of(p.d.type)) * batch * m * columns};
    return predict_pipeline(pipeline_of(c, candidate.split), work, sm_count,
                            KernelFactors(device, kernels)[candidate.kernel], limit)
        .us;
}

double predict_plan(const Problem& p, const Device& device, const Plan& plan, int sm_count)
{
    return predict_candidate(p, device, {plan.kernel, plan.swap_ab, plan.split, plan.tiles}, sm_count);
}

}  // namespace hg::sm100
