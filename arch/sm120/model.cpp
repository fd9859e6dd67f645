#include "arch/sm120/model.hpp"

#include "arch/common/host/mma_sync_model.hpp"
#include "arch/sm120/kernels.hpp"
#include "src/plan/calibration.hpp"

namespace hg::sm120 {

double predict_kernel(const Problem& p, const Device& device, int index, int64_t tiles, int sm_count,
                      double limit)
{
    const Config& c = configs[index];
    constexpr MmaSyncCosts costs{
        .mma_cycles = 0.38, .step_cycles = 11.3, .tile_cycles = 7, .vector_cycles = 0, .launch_us = 2.04};
    const MmaSyncKernel kernel{.tile_m = c.tile_m,
                               .tile_n = c.tile_n,
                               .tile_k = c.tile_k,
                               .warps = c.consumers(),
                               .warp_m = c.warp_m(),
                               .warp_n = c.warp_n(),
                               .stages = c.stages,
                               .ctas_per_sm = c.ctas_per_sm,
                               .persistent = true};
    return predict_mma_sync(p, device, kernel, costs, KernelFactors(device, kernels)[index], tiles, 1,
                            sm_count, limit);
}

double predict_plan(const Problem& p, const Device& device, const Plan& plan, int sm_count)
{
    return predict_kernel(p, device, plan.kernel, plan.tiles, sm_count);
}

}  // namespace hg::sm120
