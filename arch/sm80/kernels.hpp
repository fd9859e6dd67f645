// The host's reading of kernels.def, and last of all the kernel that copies unaligned operands.
#pragma once

#include "arch/common/repack/config.hpp"
#include "arch/sm80/configs.hpp"
#include "src/plan/backend.hpp"

#include <limits>

namespace hg::sm80 {

#define KERNEL(family, name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm80/kernels.def"
};
#undef KERNEL

template <Config C>
constexpr KernelInfo info_of(const char* name)
{
    return {name, C.m, C.n, C.k, C.stages, C.threads(), static_cast<int>(sizeof(Smem<C>))};
}

constexpr int kernel_count = sizeof configs / sizeof configs[0], repack_kernel = kernel_count;

#define KERNEL(family, name, ...) info_of<name##_config>(#name),
inline constexpr KernelInfo kernels[] = {
#include "arch/sm80/kernels.def"
    {"sm80_repack", 0, 0, 0, 0, repack_threads, 0},
};
#undef KERNEL

// Variants from here on are entry points for groups, in the order of those for GEMMs.
constexpr int group_variants = 8;

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// How a kernel is run on a problem: how many tiles, and slices of K for each.
struct Candidate {
    int kernel;
    int64_t tiles, split;
};

constexpr int64_t partials_bytes(const Config& c, int64_t tiles, int64_t split)
{
    return int64_t{sizeof(float)} * c.m * c.n * tiles * split;
}

// Microseconds that a candidate takes on `sm_count` SMs, all of the device or, if `limited`, as many as the
// caller allows. May be infinite from `limit` on.
double predict(const Problem& problem, const Device& device, const Candidate& candidate, int sm_count,
               bool limited, double limit = std::numeric_limits<double>::infinity());

// ... that a plan takes which copies no operands.
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

}  // namespace hg::sm80
