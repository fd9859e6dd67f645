// Special registers: %tid.x, %clock64, ...
#pragma once

#include "core/state.hpp"

namespace emu {

// Arg::special of an own-CTA shared address: its constant is the offset.
constexpr int special_shared_address = 0;

// Index of a special register, or -1; and its width in bits.
int find_special(std::string_view name);
int special_bits(int special);
uint64_t special_value(Exec& x, const Arg& arg, int lane);

}  // namespace emu
