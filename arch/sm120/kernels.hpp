// The host's reading of kernels.def.
#pragma once

#include "arch/sm120/config.hpp"
#include "src/plan/backend.hpp"

#include <limits>

namespace hg::sm120 {

#define KERNEL(name, ...) constexpr Config name##_config{__VA_ARGS__};
#include "arch/sm120/kernels.def"
#undef KERNEL

#define KERNEL(name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm120/kernels.def"
};
#undef KERNEL

template <Config C>
constexpr KernelInfo info_of(const char* name)
{
    constexpr int bytes = sizeof(Smem<C>);
    static_assert(bytes <= smem_limit && C.ctas_per_sm * (bytes + smem_reserved) <= smem_per_sm);
    static_assert(C.registers == 0 || C.consumers() % 4 == 0);
    static_assert(C.ctas_per_sm * 32 * (C.consumers() * C.registers + 4 * producer_registers) <=
                  registers_per_sm);
    return {name, C.m, C.n, C.k, C.stages, C.threads(), bytes};
}

#define KERNEL(name, ...) info_of<name##_config>(#name),
inline constexpr KernelInfo kernels[] = {
#include "arch/sm120/kernels.def"
};
#undef KERNEL

constexpr int kernel_count = sizeof kernels / sizeof kernels[0];

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// Microseconds that `tiles` tiles of the kernel take.
double predict(const Problem& problem, const Device& device, int kernel, int64_t tiles, int sm_count,
               double limit = std::numeric_limits<double>::infinity());
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

// Fills the kernel's parameters for a legal plan.
Status pack_gemm(const Problem& problem, const Plan& plan, Params& params);

}  // namespace hg::sm120
