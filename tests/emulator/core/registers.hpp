// Where a kernel's registers lie in Warp::registers.
#pragma once

#include "core/state.hpp"

namespace emu {

// Sets the offsets of all registers that instructions name, and the bytes of all.
void place_registers(Program& program);

}  // namespace emu
