// 128-bit integers, which ISO C++ has not.
#pragma once

namespace emu {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Unsigned128;

}  // namespace emu
