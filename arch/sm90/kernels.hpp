// The host's view of kernels.def. Kernels are numbered by their index in `kernels`: KERNEL, GROUPED,
// TRIANGLE, TREE, GATED, GATED_GROUPED, FEW_ROWS, GATED_FEW_ROWS, DIRECT, GEMV, and last sm90_repack, the
// copy kernel that runs before a GEMM whose operands TMA cannot read.
#pragma once

#include "arch/common/repack/config.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/parts.hpp"
#include "arch/sm90/smem.hpp"
#include "src/plan/backend.hpp"

#include <algorithm>
#include <iterator>

namespace hg::sm90 {

#define KERNEL(name, schedule, ...)               constexpr Config name##_config{Schedule::schedule, __VA_ARGS__};
#define GROUPED(name, schedule, ...)              KERNEL(name, schedule, __VA_ARGS__)
#define TRIANGLE(name, schedule, ...)             KERNEL(name, schedule, __VA_ARGS__, true)
#define TREE(name, schedule, ...)                 KERNEL(name, schedule, __VA_ARGS__, false, Gates::None, true)
#define GATED(name, majors, gates, schedule, ...) KERNEL(name, schedule, __VA_ARGS__, false, Gates::gates)
#define GATED_GROUPED(name, majors, ...)          GATED(name, majors, AlongN, __VA_ARGS__)
#define FEW_ROWS(name, schedule, ...)             KERNEL(name, schedule, __VA_ARGS__, false, Gates::None, false, true)
#define GATED_FEW_ROWS(name, schedule, ...)                                                                \
    KERNEL(name, schedule, __VA_ARGS__, false, Gates::AlongM, false, true)
#include "arch/sm90/kernels.def"

#define KERNEL(name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm90/kernels.def"
};

#define GROUPED(name, ...) name##_config,
constexpr Config grouped_configs[] = {
#include "arch/sm90/kernels.def"
};

#define TRIANGLE(name, ...) name##_config,
constexpr Config triangle_configs[] = {
#include "arch/sm90/kernels.def"
};

#define TREE(name, ...) name##_config,
constexpr Config tree_configs[] = {
#include "arch/sm90/kernels.def"
};

#define GATED(name, ...) name##_config,
constexpr Config gated_configs[] = {
#include "arch/sm90/kernels.def"
};

#define GATED_GROUPED(name, ...) name##_config,
constexpr Config gated_grouped_configs[] = {
#include "arch/sm90/kernels.def"
};

#define FEW_ROWS(name, ...) name##_config,
constexpr Config few_rows_configs[] = {
#include "arch/sm90/kernels.def"
};

#define GATED_FEW_ROWS(name, ...) name##_config,
constexpr Config gated_few_rows_configs[] = {
#include "arch/sm90/kernels.def"
};

#define DIRECT(name, majors, ...) DirectConfig{__VA_ARGS__},
#define GEMV(name, majors, ...)   DirectConfig{__VA_ARGS__},
constexpr DirectConfig direct_configs[] = {
#include "arch/sm90/kernels.def"
};

#define KERNEL(name, schedule, tile_m, ...) ImagePart::PART_OF_##schedule##_##tile_m,
constexpr ImagePart parts[] = {
#include "arch/sm90/kernels.def"
};
static_assert(std::ranges::is_sorted(parts), "the kernels of a part lie side by side");

template <Config C>
constexpr KernelInfo info_of(const char* name)
{
    constexpr auto bytes = std::max(sizeof(Smem<C, Major::K>), sizeof(Smem<C, Major::MN>));
    static_assert(bytes <= smem_room(C));
    return {name, C.tile_m, C.tile_n, tile_k, C.stages, C.threads(), static_cast<int>(bytes)};
}

template <DirectConfig C>
constexpr KernelInfo direct_info_of(const char* name)
{
    constexpr auto bytes = sizeof(DirectSmem<C>);
    static_assert(C.ctas_per_sm * (bytes + smem_reserved) <= smem_per_sm);
    constexpr int step = direct_step(C, is_gemv(C) ? Major::MN : Major::K);
    return {name, C.tile_m, C.tile_n, step, 1, C.threads(), static_cast<int>(bytes), !is_gemv(C)};
}

#define KERNEL(name, ...)         info_of<name##_config>(#name),
#define GROUPED(name, ...)        info_of<name##_config>(#name),
#define TRIANGLE(name, ...)       info_of<name##_config>(#name),
#define TREE(name, ...)           info_of<name##_config>(#name),
#define GATED(name, ...)          info_of<name##_config>(#name),
#define GATED_GROUPED(name, ...)  info_of<name##_config>(#name),
#define FEW_ROWS(name, ...)       info_of<name##_config>(#name),
#define GATED_FEW_ROWS(name, ...) info_of<name##_config>(#name),
#define DIRECT(name, majors, ...) direct_info_of<DirectConfig{__VA_ARGS__}>(#name),
#define GEMV(name, majors, ...)   direct_info_of<DirectConfig{__VA_ARGS__}>(#name),
inline constexpr KernelInfo kernels[] = {
#include "arch/sm90/kernels.def"
    {"sm90_repack", 0, 0, 0, 0, repack_threads, 0},
};

constexpr int gemm_count = sizeof configs / sizeof configs[0];
constexpr int grouped_count = sizeof grouped_configs / sizeof grouped_configs[0];
constexpr int direct_count = sizeof direct_configs / sizeof direct_configs[0];
constexpr int triangle_count = sizeof triangle_configs / sizeof triangle_configs[0];
constexpr int tree_count = sizeof tree_configs / sizeof tree_configs[0];
constexpr int gated_count = sizeof gated_configs / sizeof gated_configs[0];
constexpr int first_grouped = gemm_count, first_triangle = first_grouped + grouped_count;
constexpr int first_tree = first_triangle + triangle_count, first_gated = first_tree + tree_count,
              first_gated_grouped = first_gated + gated_count;
constexpr int few_rows_count = sizeof few_rows_configs / sizeof few_rows_configs[0];
constexpr int first_few_rows = first_gated_grouped + grouped_count;
constexpr int first_gated_few_rows = first_few_rows + few_rows_count;
constexpr int first_direct = first_gated_few_rows + few_rows_count;
static_assert(std::size(gated_grouped_configs) == grouped_count);
static_assert([] {  // choose_few_rows() takes the tile first, and then the kernel with gates or without
    bool alike = few_rows_count == 2 && std::size(gated_few_rows_configs) == few_rows_count;
    for (int i = 0; alike && i < few_rows_count; ++i)
        alike = few_rows_configs[i].tile_n == gated_few_rows_configs[i].tile_n;
    return alike && few_rows_configs[0].tile_n < few_rows_configs[1].tile_n;
}());

// Entry points for a B that is contiguous along N.
#define MAJORS_k                         false
#define MAJORS_both                      true
#define GATED(name, majors, ...)         static_assert(finds_n_major_gates(name##_config) == MAJORS_##majors);
#define GATED_GROUPED(name, majors, ...) GATED(name, majors)
#include "arch/sm90/kernels.def"
constexpr int repack_kernel = first_direct + direct_count;
static_assert(repack_line % span_elements == 0);  // copies are aligned as TMA's boxes want them

constexpr bool is_grouped(int kernel) { return first_grouped <= kernel && kernel < first_triangle; }
constexpr bool is_triangle(int kernel) { return first_triangle <= kernel && kernel < first_tree; }
constexpr bool is_tree(int kernel) { return first_tree <= kernel && kernel < first_gated; }
constexpr bool is_gated(int kernel) { return first_gated <= kernel && kernel < first_gated_grouped; }
constexpr bool is_gated_grouped(int kernel)
{
    return first_gated_grouped <= kernel && kernel < first_few_rows;
}
// Of groups of few rows, with gates or not.
constexpr bool is_of_few_rows(int kernel) { return first_few_rows <= kernel && kernel < first_direct; }
constexpr bool is_of_groups(int kernel) { return is_grouped(kernel) || is_gated_grouped(kernel); }
constexpr bool is_direct(int kernel) { return first_direct <= kernel && kernel < repack_kernel; }

// The config of a kernel that is not direct.
constexpr const Config& config_of(int kernel)
{
    return is_grouped(kernel)         ? grouped_configs[kernel - first_grouped]
           : is_triangle(kernel)      ? triangle_configs[kernel - first_triangle]
           : is_tree(kernel)          ? tree_configs[kernel - first_tree]
           : is_gated(kernel)         ? gated_configs[kernel - first_gated]
           : is_gated_grouped(kernel) ? gated_grouped_configs[kernel - first_gated_grouped]
           : kernel >= first_gated_few_rows && kernel < first_direct
               ? gated_few_rows_configs[kernel - first_gated_few_rows]
           : is_of_few_rows(kernel) ? few_rows_configs[kernel - first_few_rows]
                                    : configs[kernel];
}

// Does an entry point of this kernel serve an A of either major? See split_k/kernel.cuh.
constexpr bool serves_either_major(int kernel)
{
    return (kernel < gemm_count || is_tree(kernel) || is_of_few_rows(kernel)) &&
           config_of(kernel).is_split() && !config_of(kernel).is_gated();
}

// The variant of the entry point that serves a variant.
constexpr int entry_of(int kernel, int variant)
{
    return serves_either_major(kernel) ? variant & ~2 : variant;
}

}  // namespace hg::sm90
