// The host's reading of kernels.def.
#pragma once

#include "arch/sm120/config.hpp"
#include "src/plan/backend.hpp"

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
    return {name, C.tile_m, C.tile_n, C.tile_k, C.stages, C.threads(), bytes};
}

#define KERNEL(name, ...) info_of<name##_config>(#name),
inline constexpr KernelInfo kernels[] = {
#include "arch/sm120/kernels.def"
};
#undef KERNEL

constexpr int kernel_count = sizeof kernels / sizeof kernels[0];

}  // namespace hg::sm120
