// Device attributes by architecture.
#pragma once

#include "core/config.hpp"

#include <cuda.h>

namespace emu::driver {

struct Limits {
    int threads_per_sm, blocks_per_sm, smem_per_sm, l2_bytes;
};
Limits limits(const Config& config);

constexpr int threads_per_block = 1024, registers_per_sm = 64 * 1024;
constexpr int smem_per_block = 48 * 1024, reserved_smem = 1024;  // without opting in; kept by the system
constexpr int portable_cluster = 8, largest_cluster = 16;

// Throws Failure for an attribute that the emulator does not know.
int device_attribute(CUdevice_attribute attribute, const Config& config, int ordinal);

}  // namespace emu::driver
