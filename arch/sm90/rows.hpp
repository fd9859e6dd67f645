// The host's reading of kernels.def, direct.def and grouped.def.
#pragma once

#include "arch/sm90/direct.hpp"
#include "src/backend.hpp"

#include <algorithm>

namespace hg::sm90 {

#define KERNEL(name, kind, ...) constexpr Config name##_config{Kind::kind, __VA_ARGS__};
#include "arch/sm90/kernels.def"
#undef KERNEL

#define GROUPED(name, kind, ...) constexpr Config name##_config{Kind::kind, __VA_ARGS__};
#include "arch/sm90/grouped.def"
#undef GROUPED

#define KERNEL(name, ...) name##_config,
constexpr Config configs[] = {
#include "arch/sm90/kernels.def"
};
#undef KERNEL

#define GROUPED(name, ...) name##_config,
constexpr Config grouped_configs[] = {
#include "arch/sm90/grouped.def"
};
#undef GROUPED

template <Config C>
constexpr Row row_of(const char* name)
{
    constexpr auto bytes = std::max(sizeof(Smem<C, Major::K>), sizeof(Smem<C, Major::MN>));
    static_assert(bytes <= smem_room(C));
    return {name, C.x, C.y, tile_k, C.stages, C.threads(), static_cast<int>(bytes)};
}

#define DIRECT(name, ...)   DirectConfig{__VA_ARGS__},
#define DIRECT_K(name, ...) DirectConfig{__VA_ARGS__},
#define DIRECT_M(name, ...) DirectConfig{__VA_ARGS__},
constexpr DirectConfig direct_configs[] = {
#include "arch/sm90/direct.def"
};
#undef DIRECT
#undef DIRECT_K
#undef DIRECT_M

template <DirectConfig C>
constexpr Row direct_row_of(const char* name)
{
    constexpr auto bytes = sizeof(DirectSmem<C>);
    static_assert(C.residents * (bytes + smem_reserved) <= smem_per_sm);
    constexpr int step = direct_step(C, takes_lines(C) ? Major::MN : Major::K);
    return {name, C.x, C.y, step, 1, C.threads(), static_cast<int>(bytes), !takes_lines(C)};
}

#define KERNEL(name, ...)   row_of<name##_config>(#name),
#define DIRECT(name, ...)   direct_row_of<DirectConfig{__VA_ARGS__}>(#name),
#define DIRECT_K(name, ...) DIRECT(name, __VA_ARGS__)
#define DIRECT_M(name, ...) DIRECT(name, __VA_ARGS__)
#define GROUPED(name, ...)  row_of<name##_config>(#name),
// Behind the rows of products one that is no product: it is launched before a product
// that needs it.
constexpr Row rows[] = {
#include "arch/sm90/kernels.def"

#include "arch/sm90/direct.def"

#include "arch/sm90/grouped.def"
    {"sm90_repack", 0, 0, 0, 0, repack_threads, 0},
};
#undef KERNEL
#undef DIRECT
#undef DIRECT_K
#undef DIRECT_M
#undef GROUPED

constexpr int row_count = sizeof configs / sizeof configs[0];
constexpr int direct_count = sizeof direct_configs / sizeof direct_configs[0];
constexpr int grouped_count = sizeof grouped_configs / sizeof grouped_configs[0];
constexpr int first_grouped_row = row_count + direct_count;
constexpr int repack_row = first_grouped_row + grouped_count;

// Has a table the rows of kernels.def, by name and in their order?
template <typename Line, size_t Lines>
consteval bool names_all_rows(const Line (&table)[Lines])
{
    bool all = Lines == row_count;
    for (int row = 0; all && row < row_count; ++row)
        all = table[row].name == rows[row].name;
    return all;
}

constexpr bool is_direct(int row) { return row_count <= row && row < first_grouped_row; }
constexpr bool is_grouped(int row) { return first_grouped_row <= row && row < repack_row; }

// Of any row but direct ones.
constexpr const Config& config_of(int row)
{
    return is_grouped(row) ? grouped_configs[row - first_grouped_row] : configs[row];
}

// Is D one that TMA can store: of floats or of the operands' type?
bool is_stored_by_tma(const Problem& problem);

// How a persistent kernel of this row stores this output, if it can.
Store store_of(const Config& config, const Problem& problem, bool swapped);

// Can a kernel of this row make this output?
bool can_store(const Config& config, const Problem& problem, bool swapped);

// Words behind a workspace of so many bytes: some that CTAs count arrivals with, and such as slices leave
// for each other, of a tile of 128 x 128 for each multiprocessor, but no more bytes than a quarter of the
// workspace.
size_t counter_words(const Device& device, size_t workspace);

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// Kernels of direct.def: those that multiply lines of x, for few rows of y, and all others.
enum class DirectKind { Lines, Others };

// Is it for the former, whatever else could serve it?
bool is_for_lines(const Problem& problem);

// Fill what a plan says of the kernel; false with plan.refusal set when none of this kind fits, or of
// either if one is forced.
bool choose_direct(const Problem& problem, const Device& device, const Options& options, DirectKind kind,
                   Plan& plan);

// The same for problems with groups, by the kernels of grouped.def.
bool choose_groups(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// A problem with groups, with as many matrices A and D as there are: one, of contiguous groups.
Problem rows_of_groups(const Problem& problem);

// k tiles that each CTA asks L2 for while the kernels in front end: all of small operands; none where alpha
// may be 0, since then no operand is touched.
int32_t count_prefetched(const Problem& problem, const Config& config, const Plan& plan, int sm_count);

// Fill the kernel's parameters for a legal plan, but for the memory of a streamed one.
Status pack_product(const Problem& problem, const Plan& plan, int sm_count, Params& params);
Status pack_groups(const Problem& problem, const Plan& plan, Params& params);
void pack_direct(const Problem& problem, const Plan& plan, DirectParams& params);

}  // namespace hg::sm90
