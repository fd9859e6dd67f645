// The host's reading of kernels.def.
#pragma once

#include "arch/sm90/config.hpp"
#include "src/backend.hpp"

#include <algorithm>

namespace hg::sm90 {

#define KERNEL(name, kind, ...) constexpr Config name##_config{Kind::kind, __VA_ARGS__};
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
    constexpr auto bytes = std::max(sizeof(Smem<C, Major::K>), sizeof(Smem<C, Major::MN>));
    static_assert(bytes <= smem_room(C));
    return {name, C.x, C.y, tile_k, C.stages, C.threads(), static_cast<int>(bytes)};
}

#define KERNEL(name, ...) row_of<name##_config>(#name),
// Behind the rows of kernels.def one that is no product: it is launched before a product that needs it.
constexpr Row rows[] = {
#include "arch/sm90/kernels.def"
    {"sm90_repack", 0, 0, 0, 0, repack_threads, 0},
};
#undef KERNEL

constexpr int row_count = sizeof configs / sizeof configs[0], repack_row = row_count;

// Is the output one that a persistent kernel stores by TMA: with a bias at most, of floats or of the
// operands' type?
bool is_stored_by_tma(const Problem& problem);

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan);

// k tiles that each CTA asks L2 for while the kernels in front end; none where alpha may be 0, since then
// no operand is touched.
int32_t count_prefetched(const Problem& problem, bool streams);

// Fill the kernel's parameters for a legal plan, but for the memory of a streamed one.
Status pack_product(const Problem& problem, const Plan& plan, int sm_count, Params& params);

}  // namespace hg::sm90
