// What kernels of sm120 cost.
#include "arch/common/host/mma_sync_model.hpp"
#include "arch/sm120/kernels.hpp"

namespace hg::sm120 {

double predict(const Problem& p, const Device& device, const Config& c, int64_t tiles, int sm_count)
{
    constexpr MmaSyncCosts costs{
        .mma_cycles = 0.38, .step_cycles = 11.3, .tile_cycles = 7, .vector_cycles = 0, .launch_us = 2.04};
    const MmaSyncKernel kernel{.m = c.m,
                               .n = c.n,
                               .k = c.k,
                               .warps = c.consumers(),
                               .warp_m = c.warp_m(),
                               .warp_n = c.warp_n(),
                               .stages = c.stages,
                               .ctas_per_sm = c.ctas_per_sm,
                               .persistent = true};
    return predict_mma_sync(p, device, kernel, costs, tiles, 1, sm_count);
}

}  // namespace hg::sm120
