#include "cuda.hpp"

#include <dlfcn.h>

// Declarations follow cuda.h of CUDA 12; the names are the ABI's, with its version suffixes.
#define CUDA_FUNCTIONS(F)                                                                                  \
    F(cuInit, (unsigned))                                                                                  \
    F(cuDeviceGet, (int*, int))                                                                            \
    F(cuDevicePrimaryCtxRetain, (CUctx_st**, int))                                                         \
    F(cuCtxPushCurrent_v2, (CUctx_st*))                                                                    \
    F(cuCtxPopCurrent_v2, (CUctx_st**))                                                                    \
    F(cuMemAlloc_v2, (DevicePtr*, size_t))                                                                 \
    F(cuMemFree_v2, (DevicePtr))                                                                           \
    F(cuMemHostAlloc, (void**, size_t, unsigned))                                                          \
    F(cuMemFreeHost, (void*))                                                                              \
    F(cuMemcpyHtoDAsync_v2, (DevicePtr, const void*, size_t, Stream))                                      \
    F(cuMemcpyDtoHAsync_v2, (void*, DevicePtr, size_t, Stream))                                            \
    F(cuStreamCreate, (Stream*, unsigned))                                                                 \
    F(cuStreamSynchronize, (Stream))                                                                       \
    F(cuStreamWaitEvent, (Stream, Event, unsigned))                                                        \
    F(cuEventCreate, (Event*, unsigned))                                                                   \
    F(cuEventRecord, (Event, Stream))                                                                      \
    F(cuEventSynchronize, (Event))                                                                         \
    F(cuThreadExchangeStreamCaptureMode, (int*))

namespace hg::cblas::cuda {
namespace {

using DevicePtr = unsigned long long;

constexpr unsigned non_blocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned without_timing = 2;  // CU_EVENT_DISABLE_TIMING
constexpr int relaxed = 2;              // CU_STREAM_CAPTURE_MODE_RELAXED

struct Functions {
#define DECLARE(name, arguments) int(*name) arguments = nullptr;
    CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
} cu;

CUctx_st* context = nullptr;

bool resolve()
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return false;
#define RESOLVE(name, arguments)                                                                           \
    cu.name = reinterpret_cast<int(*) arguments>(dlsym(library, #name));                                   \
    if (!cu.name)                                                                                          \
        return false;
    CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
    return true;
}

DevicePtr address(const void* device) { return reinterpret_cast<DevicePtr>(device); }

}  // namespace

bool open()
{
    int device = 0;
    return resolve() && cu.cuInit(0) == 0 && cu.cuDeviceGet(&device, 0) == 0 &&
           cu.cuDevicePrimaryCtxRetain(&context, device) == 0;
}

// Relaxed: to allocate would otherwise end what the program captures.
Scope::Scope()
    : pushed_(cu.cuCtxPushCurrent_v2(context) == 0), capture_mode_(relaxed),
      changed_(cu.cuThreadExchangeStreamCaptureMode(&capture_mode_) == 0)
{
}

Scope::~Scope()
{
    CUctx_st* popped;
    if (pushed_)
        cu.cuCtxPopCurrent_v2(&popped);
    if (changed_)
        cu.cuThreadExchangeStreamCaptureMode(&capture_mode_);
}

bool Buffer::reserve(size_t bytes)
{
    if (bytes <= bytes_)
        return true;
    DevicePtr device = 0;
    void* pinned = nullptr;
    if (place_ == Place::Device) {
        if (memory_)
            cu.cuMemFree_v2(address(memory_));
        const bool done = cu.cuMemAlloc_v2(&device, bytes) == 0;
        memory_ = done ? reinterpret_cast<char*>(device) : nullptr;
    } else {
        if (memory_)
            cu.cuMemFreeHost(memory_);
        const bool done = cu.cuMemHostAlloc(&pinned, bytes, 0) == 0;
        memory_ = done ? static_cast<char*>(pinned) : nullptr;
    }
    bytes_ = memory_ ? bytes : 0;
    return memory_;
}

bool create(Stream& stream) { return cu.cuStreamCreate(&stream, non_blocking) == 0; }
bool create(Event& event) { return cu.cuEventCreate(&event, without_timing) == 0; }
bool record(Event event, Stream stream) { return cu.cuEventRecord(event, stream) == 0; }
bool wait(Event event) { return cu.cuEventSynchronize(event) == 0; }
bool wait(Stream stream) { return cu.cuStreamSynchronize(stream) == 0; }
bool make_wait(Stream stream, Event event) { return cu.cuStreamWaitEvent(stream, event, 0) == 0; }

bool upload(void* device, const void* pinned, size_t bytes, Stream stream)
{
    return cu.cuMemcpyHtoDAsync_v2(address(device), pinned, bytes, stream) == 0;
}

bool download(void* pinned, const void* device, size_t bytes, Stream stream)
{
    return cu.cuMemcpyDtoHAsync_v2(pinned, address(device), bytes, stream) == 0;
}

}  // namespace hg::cblas::cuda
