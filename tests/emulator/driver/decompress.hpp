// Compressed entries of fatbins, which nvcc makes unless it is told not to.
#pragma once

#include <cstdint>
#include <string>

namespace emu::driver {

constexpr uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;

// False where the system lacks the library that unpacks it, or the data are broken.
bool decompress(uint64_t flags, const char* data, size_t bytes, std::string& text);

}  // namespace emu::driver
