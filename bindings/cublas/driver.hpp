// The CUDA driver, as little of it as the shim needs, taken from the libcuda.so.1 that the program has
// loaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hg::shim::driver {

// The calling thread's context; null if it has none or there is no driver.
void* current_context();

// Is the stream recording a graph, or would using it disturb one that is recorded? True where unknown.
bool is_capturing(void* stream);

// While it lives, this thread may allocate although a graph is being recorded.
class AllowAllocation {
public:
    AllowAllocation();
    ~AllowAllocation();
    AllowAllocation(const AllowAllocation&) = delete;
    AllowAllocation& operator=(const AllowAllocation&) = delete;

private:
    int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
    bool changed_ = false;
};

bool wait(void* stream);
bool copy_out(void* host, const void* device, size_t bytes);
bool copy_in(void* device, const void* host, size_t bytes);

}  // namespace hg::shim::driver
