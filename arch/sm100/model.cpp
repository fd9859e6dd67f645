#include "arch/sm100/model.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm100/kernels.hpp"
#include "src/plan/calibration.hpp"
#include "src/plan/problem.hpp"

namespace hg::sm100 {

Pipeline pipeline_of(const Config& c, int split)
{
    const bool persistent = !c.is_split();
    Pipeline p{c.cta_group, c.tile_m,         c.tile_n,
               tile_k,      c.stages,         Overlap::Products,
               persistent,  c.accumulators(), persistent ? Store::Boxes : Store::Rows};
    p.split = p.writers = split;  // each slice stores a part of the tile
    return p;
}

double predict(const Problem& p, const Device& device, const Candidate& candidate, int sm_count,
               double limit)
{
    const Config& c = configs[candidate.kernel];
    const auto batch = static_cast<double>(p.batch), m = static_cast<double>(p.m),
               n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const Work work{candidate.clusters, p.k, 2.0 * batch * k * (m + n),
                    static_cast<double>(bytes_of(p.d.type)) * batch * m * n};
    return predict(pipeline_of(c, candidate.split), work, sm_count,
                   KernelFactors(device, kernels)[candidate.kernel], limit)
        .us;
}

double predict_plan(const Problem& p, const Device& device, const Plan& plan, int sm_count)
{
    return predict(p, device, {plan.kernel, plan.swap_ab, plan.split, plan.tiles}, sm_count);
}

}  // namespace hg::sm100
