// The few functions of the CUDA driver that the shim needs, from the libcuda.so.1 that the program has
// loaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hg::shim::driver {

// The calling thread's context; null if it has none or there is no driver.
void* current_context();

// Is the stream recording a graph, or would using it disturb one that is recorded? True where unknown.
bool is_capturing(void* stream);

// While it lives, this thread may allocate and wait although another one records a graph.
class AllowWhileRecording {
public:
    AllowWhileRecording();
    ~AllowWhileRecording();
    AllowWhileRecording(const AllowWhileRecording&) = delete;
    AllowWhileRecording& operator=(const AllowWhileRecording&) = delete;

private:
    int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
    bool changed_ = false;
};

bool wait(void* stream);
// Copies in the stream's order: non-blocking streams do not wait for the default one.
bool copy_out(void* host, const void* device, size_t bytes, void* stream);
bool copy_in(void* device, const void* host, size_t bytes, void* stream);

}  // namespace hg::shim::driver
