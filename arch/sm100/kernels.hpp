// The host's reading of kernels.def.
#pragma once

#include "arch/sm100/config.hpp"
#include "src/plan/backend.hpp"

namespace hg::sm100 {

#define KERNEL(name, schedule, ...) constexpr Config name##_config{Schedule::schedule, __VA_ARGS__};
#include "arch/sm100/kernels.def"
#undef KERNEL

#define KERNEL(name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm100/kernels.def"
};
#undef KERNEL

template <Config C>
constexpr KernelInfo info_of(const char* name)
{
    static_assert(sizeof(Smem<C>) <= smem_limit);
    return {name, C.tile_m, C.tile_n, tile_k, C.stages, C.threads(), static_cast<int>(sizeof(Smem<C>))};
}

#define KERNEL(name, ...) info_of<name##_config>(#name),
inline constexpr KernelInfo kernels[] = {
#include "arch/sm100/kernels.def"
};
#undef KERNEL

constexpr int kernel_count = sizeof configs / sizeof configs[0];

// Microseconds that the cost model expects of a plan.
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// Fills the kernel's parameters for a legal plan.
Status pack_gemm(const Problem& problem, const Plan& plan, int sm_count, Params& params);

}  // namespace hg::sm100
