// The host's reading of kernels.def.
#pragma once

#include "arch/sm90/config.hpp"
#include "src/backend.hpp"

namespace hg::sm90 {

#define KERNEL(name, ...) constexpr Config name##_config{__VA_ARGS__};
#include "arch/sm90/kernels.def"
#undef KERNEL

#define KERNEL(name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm90/kernels.def"
};
#undef KERNEL

template <Config C>
constexpr Row row_of(const char* name)
{
    static_assert(sizeof(Smem<C>) <= smem_limit);
    return {name, C.m, C.n, C.k, C.stages, 1, 1, C.threads(), static_cast<int>(sizeof(Smem<C>))};
}

#define KERNEL(name, ...) row_of<name##_config>(#name),
constexpr Row rows[] = {
#include "arch/sm90/kernels.def"
};
#undef KERNEL

constexpr int row_count = sizeof rows / sizeof rows[0];

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm90
