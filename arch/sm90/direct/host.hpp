// What choosing a direct or gemv kernel and packing its parameters share.
#pragma once

#include "arch/common/host/pack.hpp"
#include "arch/sm90/direct/config.hpp"

#include <cstdint>

namespace hg::sm90 {

// K's that a warp multiplies at a time.
inline int step_of(const Problem& p, const DirectConfig& config, bool swap_ab)
{
    return direct_step(config, major_of(Mma(p, swap_ab).a));
}

// Rows of A from tile to tile.
inline int64_t width_of(const Problem& p, const DirectConfig& config, bool swap_ab)
{
    return direct_width(config, is_vector_operand(Mma(p, swap_ab).a, p.batch));
}

}  // namespace hg::sm90
