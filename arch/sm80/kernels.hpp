// The host's reading of kernels.def, and last of all the kernels that copy unaligned operands, add up the
// leaves of a tree, move triangles, gate sums and compute the gradients of gates, exchange data with other
// streams and GPUs, and serve layers of experts.
#pragma once

#include "arch/common/exchange/config.hpp"
#include "arch/common/experts/config.hpp"
#include "arch/common/gate/config.hpp"
#include "arch/common/repack/config.hpp"
#include "arch/common/tree/config.hpp"
#include "arch/common/triangle/config.hpp"
#include "arch/sm80/config.hpp"
#include "src/plan/backend.hpp"

#include <cstdint>

namespace hg::sm80 {

#define KERNEL(family, name, ...) constexpr Config name##_config{Family::family, __VA_ARGS__};
#include "arch/sm80/kernels.def"
#undef KERNEL

#define KERNEL(family, name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm80/kernels.def"
};
#undef KERNEL

template <Config C>
constexpr KernelInfo info_of(const char* name)
{
    return {name, C.tile_m, C.tile_n, C.tile_k, C.stages, C.threads(), static_cast<int>(sizeof(Smem<C>))};
}

constexpr int kernel_count = sizeof configs / sizeof configs[0], repack_kernel = kernel_count,
              tree_kernel = kernel_count + 1, triangle_kernel = kernel_count + 2,
              gate_kernel = kernel_count + 3, gate_gradient_kernel = kernel_count + 4,
              exchange_kernel = kernel_count + 5, route_kernel = kernel_count + 6,
              gather_kernel = kernel_count + 7, combine_kernel = kernel_count + 8,
              dot_kernel = kernel_count + 9, clear_kernel = kernel_count + 10;

#define KERNEL(family, name, ...) info_of<name##_config>(#name),
inline constexpr KernelInfo kernels[] = {
#include "arch/sm80/kernels.def"
    {"sm80_repack", 0, 0, 0, 0, repack_threads, 0},
    {"sm80_tree", 0, 0, 0, 0, tree_threads, sizeof(TreeShared)},
    {"sm80_triangle", 0, 0, 0, 0, triangle_threads, sizeof(TriangleTile<uint32_t>)},
    {"sm80_gate", 0, 0, 0, 0, gate_threads, 0},
    {"sm80_gate_gradient", 0, 0, 0, 0, gate_threads, 0},
    {"sm80_exchange", 0, 0, 0, 0, exchange_threads, 0},
    {"sm80_route", 0, 0, 0, 0, route_threads, sizeof(RouteShared)},
    {"sm80_gather", 0, 0, 0, 0, rows_threads, 0},
    {"sm80_combine", 0, 0, 0, 0, rows_threads, 0},
    {"sm80_dot", 0, 0, 0, 0, rows_threads, 0},
    {"sm80_clear", 0, 0, 0, 0, rows_threads, 0},
};
#undef KERNEL

// Variants from here on are entry points for groups, in the order of those for GEMMs.
constexpr int group_variants = 8;
// And from here on for groups of K, with gates, and with gates for groups of rows.
constexpr int k_group_variants = 2 * group_variants, gate_variants = 3 * group_variants,
              gated_group_variants = 4 * group_variants, all_variants = 5 * group_variants;

// Of the workspace, for the sums of slices of K.
constexpr int64_t partials_bytes(const Config& c, int64_t tiles, int64_t split)
{
    return int64_t{sizeof(float)} * c.tile_m * c.tile_n * tiles * split;
}

}  // namespace hg::sm80
