// Kernels on whatever libcuda.so.1 the loader finds: a GPU's, or the emulator's.
#pragma once

#include "kernel.hpp"

#include <cuda.h>

#include <stdexcept>

namespace emu::silicon {

struct DriverError : std::runtime_error {
    using runtime_error::runtime_error;
};

// The first device with a context of its own; the library stays loaded.
class Device {
public:
    Device();  // throws DriverError

    std::string describe() const;

    // The output after the launch. Throws DriverError with the name of the error; `lost` then tells that
    // the context cannot be used again.
    std::vector<uint8_t> run(const Kernel& kernel);
    bool lost() const { return lost_; }

private:
    void* library_ = nullptr;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    bool lost_ = false;
};

}  // namespace emu::silicon
