#include "arch/sm80/model.hpp"

#include "arch/common/host/mma_sync_model.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/sm80/kernels.hpp"
#include "src/plan/calibration.hpp"

namespace hg::sm80 {
namespace {

constexpr MmaSyncCosts costs{
    .mma_cycles = 0.42, .step_cycles = 11.3, .tile_cycles = 3, .vector_cycles = 0, .launch_us = 3.07};
constexpr MmaSyncCosts unaligned_costs{
    .mma_cycles = 0.19, .step_cycles = 0, .tile_cycles = 1550, .vector_cycles = 0.76, .launch_us = 4.37};

// Kernels that read element by element: whole waves of tiles, at a tenth of the speed of others.
double predict_any(const Problem& p, const Config& c, const Factors& f, int64_t tiles, int sm_count)
{
    constexpr double flops_a_cycle = 100.0, launch = 3.3, cycles = 1500.0;  // us, a us
    const double tile_cycles =
        2.0 * c.tile_m * c.tile_n * static_cast<double>(p.k) / flops_a_cycle + 1500.0;
    return f.fixed * launch +
           f.cycles * static_cast<double>(ceil_div(tiles, sm_count)) * tile_cycles / cycles;
}

}  // namespace

double predict_candidate(const Problem& p, const Device& device, const Candidate& candidate, int sm_count,
                         bool limited, double limit)
{
    const Config& c = configs[candidate.kernel];
    const Factors& factors = KernelFactors(device, kernels)[candidate.kernel];
    if (c.takes_any())
        return predict_any(p, c, factors, candidate.tiles, sm_count);
    const int room = count_resident_ctas(device, kernels[candidate.kernel].smem_bytes, c.threads(),
                                         c.warp_m(), c.warp_n());
    const MmaSyncKernel kernel{.tile_m = c.tile_m,
                               .tile_n = c.tile_n,
                               .tile_k = c.tile_k,
                               .warps = c.warps(),
                               .warp_m = c.warp_m(),
                               .warp_n = c.warp_n(),
                               .stages = c.stages,
                               .ctas_per_sm = limited ? 1 : room,
                               .persistent = false,
                               .a_launch_a_wave = limited};
    return predict_mma_sync(p, device, kernel, c.takes_unaligned() ? unaligned_costs : costs, factors,
                            candidate.tiles, candidate.split, sm_count, limit);
}

double predict_plan(const Problem& p, const Device& device, const Plan& plan, int sm_count)
{
    return predict_candidate(p, device, {plan.kernel, plan.tiles, plan.split}, sm_count, false);
}

}  // namespace hg::sm80
