// Kernels as the driver judges them.
#pragma once

#include "driver/driver.hpp"

namespace emu::driver {

int largest_block(const ptx::Kernel& kernel);  // threads
int registers_per_thread(const ptx::Kernel& kernel);
int blocks_per_sm(const Function& function, const Config& config, int threads, size_t dynamic_shared);

// The launch that a configuration describes, without parameters. Throws Failure for what the device or the
// kernel does not allow, and for attributes that the emulator does not know.
Launch check_launch(const Function& function, const CUlaunchConfig& config);

}  // namespace emu::driver
