// Recognises pointers to GPU memory where the CPU would read through them.
#pragma once

#include "src/base/status.hpp"

namespace hg {

// Called when a handle on the host is created: if the process has loaded the CUDA driver, pointers are
// looked up in it from then on. The child of a fork() does not.
void find_loaded_driver();

// Refuses an argument that is a pointer to device memory, as far as the driver tells.
Status check_host_memory(int position, const char* name, const void* ptr);

}  // namespace hg
