// The host's reading of kernels.def.
#pragma once

#include "arch/sm80/config.hpp"
#include "src/backend.hpp"

namespace hg::sm80 {

#define TILE(name, ...) constexpr Config name##_config{__VA_ARGS__, false};
#define ANY(name, ...)  constexpr Config name##_config{__VA_ARGS__, true};
#include "arch/sm80/kernels.def"
#undef TILE
#undef ANY

#define TILE(name, ...) name##_config,
#define ANY(name, ...)  name##_config,
constexpr Config configs[] = {
#include "arch/sm80/kernels.def"
};
#undef TILE
#undef ANY

template <Config C>
constexpr KernelInfo info_of(const char* name)
{
    return {name, C.m, C.n, C.k, C.stages, C.threads(), static_cast<int>(sizeof(Smem<C>))};
}

#define TILE(name, ...) info_of<name##_config>(#name),
#define ANY(name, ...)  info_of<name##_config>(#name),
constexpr KernelInfo kernels[] = {
#include "arch/sm80/kernels.def"
};
#undef TILE
#undef ANY

constexpr int kernel_count = sizeof kernels / sizeof kernels[0];

// Variants from here on are entry points for groups, in the order of those for GEMMs.
constexpr int group_variants = 8;

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm80
