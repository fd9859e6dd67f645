// Pointers that the CPU reads through: does one lead to memory of a GPU?
#pragma once

#include "status.hpp"

namespace hg {

// Has the process loaded the CUDA driver? It is asked from then on what kind of memory pointers lead to.
// For handles on the host, when they are created.
void find_loaded_driver();

// Refuses an argument that is a pointer to device memory, as far as the driver tells.
Status check_host_memory(int position, const char* name, const void* ptr);

}  // namespace hg
