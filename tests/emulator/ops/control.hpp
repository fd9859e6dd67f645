// Parts of the control family.
#pragma once

#include "core/state.hpp"

namespace emu {

void add_branches(DecoderTable&);        // control.cpp
void add_named_barriers(DecoderTable&);  // control_barrier.cpp
void add_warp_exchange(DecoderTable&);   // control_warp.cpp: shfl, vote, match, redux, elect, activemask
void add_calls(DecoderTable&);           // control_call.cpp: vprintf, __assertfail

}  // namespace emu
