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

}  // namespace hg::sm100
