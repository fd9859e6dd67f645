// The emulated driver as a program meets it: libcuda.so.1 opened at run time, entry points by
// cuGetProcAddress. Each test starts with device 0's primary context current and ends with nothing left.
#pragma once

#include "driver/control.hpp"

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace emu::test {

void* driver_library();
void* driver_symbol(const char* name);             // by its name in the library
void* entry_point(const char* name, int version);  // by cuGetProcAddress; null if it is not there

// cu<cuMemAlloc>("cuMemAlloc")(...): the type is that of cuda.h.
template <auto Declared>
decltype(Declared) entry(const char* name)
{
    return reinterpret_cast<decltype(Declared)>(entry_point(name, CUDA_VERSION));
}
#define CU(name)  (emu::test::entry<&::name>(#name))
#define EMU(name) (reinterpret_cast<decltype(&::name)>(emu::test::driver_symbol(#name)))

#define EXPECT_CU(result, ...) EXPECT_EQ(static_cast<int>(result), static_cast<int>(__VA_ARGS__))
#define ASSERT_CU(...)         ASSERT_EQ(static_cast<int>(__VA_ARGS__), static_cast<int>(CUDA_SUCCESS))

constexpr CUresult success = CUDA_SUCCESS;

// x[i] *= a for i < n; x[i] += a for i < n.
extern const char* const kernels_ptx;

class Driver : public testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    CUdeviceptr allocate(size_t bytes);
    CUdeviceptr upload(const std::vector<float>& values);
    std::vector<float> download(CUdeviceptr from, size_t count);
    CUfunction kernel(const char* name);
    // A kernel with parameters (pointer, factor, count), 32 threads in a CTA.
    CUresult launch(CUfunction function, CUdeviceptr x, float a, unsigned n, CUstream stream = nullptr);

    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    int cc = 0;
};

}  // namespace emu::test
