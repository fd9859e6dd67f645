// Bank conflicts of shared memory.
#pragma once

#include "core/state.hpp"

namespace emu {

// Count what this instruction's access of some lanes, `bytes` each, takes.
void count_passes(Exec& x, Mask lanes, const Location (&at)[warp_lanes], int bytes);

}  // namespace emu
