// What choosing a direct or gemv kernel and packing its parameters share.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/direct/config.hpp"

#include <cstdint>

namespace hg::sm90 {

// K of one step of a warp.
inline int step_of(const Facts& f, const DirectConfig& config, bool swap_ab)
{
    return direct_step(config, f.mma_a(swap_ab).major);
}

// Rows of A from one tile to the next.
inline int64_t width_of(const Facts& f, const DirectConfig& config, bool swap_ab)
{
    return direct_width(config, f.mma_a(swap_ab).vectors);
}

}  // namespace hg::sm90
