// Names and texts of the driver's errors.
#pragma once

#include <cuda.h>

#include <string>

namespace emu::driver {

bool error_by_name(const std::string& name, CUresult* result);  // "CUDA_ERROR_OUT_OF_MEMORY"
const char* error_name(CUresult result);                        // null: no such error

}  // namespace emu::driver
