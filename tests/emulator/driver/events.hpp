// What programs that watch this one are told: lines of JSON, which EMU_JSON names a file for. Without
// <cuda.h>.
#pragma once

#include <string>

namespace emu::driver {

void write_event(const std::string& json);

// To stderr and to that file: what a call refuses, and why.
void complain(const char* call, const std::string& text);

}  // namespace emu::driver
