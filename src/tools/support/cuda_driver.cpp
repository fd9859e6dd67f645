#include "src/tools/support/cuda_driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

// Declarations follow cuda.h of CUDA 12; the names are the ABI's, with its version suffixes.
#define CUDA_FUNCTIONS(F)                                                                                  \
    F(cuInit, (unsigned))                                                                                  \
    F(cuDriverGetVersion, (int*))                                                                          \
    F(cuDeviceGetCount, (int*))                                                                            \
    F(cuDeviceGet, (int*, int))                                                                            \
    F(cuDeviceGetName, (char*, int, int))                                                                  \
    F(cuDeviceGetAttribute, (int*, int, int))                                                              \
    F(cuDevicePrimaryCtxRetain, (CUctx_st**, int))                                                         \
    F(cuCtxSetCurrent, (CUctx_st*))                                                                        \
    F(cuCtxCreate_v2, (CUctx_st**, unsigned, int))                                                         \
    F(cuCtxDestroy_v2, (CUctx_st*))                                                                        \
    F(cuCtxSynchronize, ())                                                                                \
    F(cuMemGetInfo_v2, (size_t*, size_t*))                                                                 \
    F(cuMemAlloc_v2, (DevicePtr*, size_t))                                                                 \
    F(cuMemFree_v2, (DevicePtr))                                                                           \
    F(cuMemcpyHtoD_v2, (DevicePtr, const void*, size_t))                                                   \
    F(cuMemcpyDtoH_v2, (void*, DevicePtr, size_t))                                                         \
    F(cuMemcpyDtoD_v2, (DevicePtr, DevicePtr, size_t))                                                     \
    F(cuMemsetD8_v2, (DevicePtr, unsigned char, size_t))                                                   \
    F(cuMemGetAllocationGranularity, (size_t*, const AllocationProp*, int))                                \
    F(cuMemAddressReserve, (DevicePtr*, size_t, size_t, DevicePtr, unsigned long long))                    \
    F(cuMemAddressFree, (DevicePtr, size_t))                                                               \
    F(cuMemCreate, (unsigned long long*, size_t, const AllocationProp*, unsigned long long))               \
    F(cuMemRelease, (unsigned long long))                                                                  \
    F(cuMemMap, (DevicePtr, size_t, size_t, unsigned long long, unsigned long long))                       \
    F(cuMemUnmap, (DevicePtr, size_t))                                                                     \
    F(cuMemSetAccess, (DevicePtr, size_t, const AccessDesc*, size_t))                                      \
    F(cuStreamCreate, (CUstream_st**, unsigned))                                                           \
    F(cuStreamDestroy_v2, (CUstream_st*))                                                                  \
    F(cuStreamSynchronize, (CUstream_st*))                                                                 \
    F(cuStreamBeginCapture_v2, (CUstream_st*, int))                                                        \
    F(cuStreamEndCapture, (CUstream_st*, Graph**))                                                         \
    F(cuLaunchHostFunc, (CUstream_st*, void (*)(void*), void*))                                            \
    F(cuEventCreate, (CUevent_st**, unsigned))                                                             \
    F(cuEventDestroy_v2, (CUevent_st*))                                                                    \
    F(cuEventRecord, (CUevent_st*, CUstream_st*))                                                          \
    F(cuEventSynchronize, (CUevent_st*))                                                                   \
    F(cuEventElapsedTime, (float*, CUevent_st*, CUevent_st*))                                              \
    F(cuGraphInstantiateWithFlags, (CUgraphExec_st**, Graph*, unsigned long long))                         \
    F(cuGraphDestroy, (Graph*))                                                                            \
    F(cuGraphLaunch, (CUgraphExec_st*, CUstream_st*))                                                      \
    F(cuGraphExecDestroy, (CUgraphExec_st*))                                                               \
    F(cuGetErrorName, (int, const char**))

namespace hg::test {
namespace {

using DevicePtr = unsigned long long;
struct Graph;  // a CUgraph

struct Location {
    int type = 1, id = 0;  // CU_MEM_LOCATION_TYPE_DEVICE
};
struct AllocationProp {
    int type = 1, handle_types = 0;  // CU_MEM_ALLOCATION_TYPE_PINNED
    Location location;
    void* win32 = nullptr;
    unsigned char flags[8] = {};
};
struct AccessDesc {
    Location location;
    int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};

struct Functions {
#define DECLARE(name, arguments) int(*name) arguments = nullptr;
    CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
} cu;

std::string reason;

bool load()
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        reason = "no CUDA driver (libcuda.so.1)";
        return false;
    }
#define RESOLVE(name, arguments)                                                                           \
    cu.name = reinterpret_cast<int(*) arguments>(dlsym(library, #name));                                   \
    if (!cu.name)                                                                                          \
        throw std::runtime_error("libcuda.so.1 has no " #name);
    CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
    int count = 0;
    if (const int error = cu.cuInit(0); error != 0) {
        reason = "cuInit answers " + std::to_string(error);
        return false;
    }
    if (cu.cuDeviceGetCount(&count) != 0 || count == 0) {
        reason = "no CUDA device";
        return false;
    }
    return true;
}

void check(int error, const char* what)
{
    if (error == 0)
        return;
    const char* name = nullptr;
    cu.cuGetErrorName(error, &name);
    throw std::runtime_error(std::string(what) + ": " + (name ? name : std::to_string(error)));
}
#define CHECK(name, ...) check(cu.name(__VA_ARGS__), #name)

DevicePtr address(const void* ptr) { return reinterpret_cast<DevicePtr>(ptr); }

AllocationProp pages_of(int device)
{
    AllocationProp prop;
    prop.location.id = device;
    return prop;
}

}  // namespace

Cuda* Cuda::get()
{
    static const std::unique_ptr<Cuda> cuda(load() ? new Cuda : nullptr);
    if (cuda)
        cuda->make_current(cuda->context_);
    return cuda.get();
}

const std::string& Cuda::absent()
{
    get();
    return reason;
}

Cuda::Cuda()
{
    char name[256] = "";
    CHECK(cuDriverGetVersion, &driver_version_);
    CHECK(cuDeviceGet, &device_, 0);
    CHECK(cuDeviceGetName, name, int{sizeof name}, device_);
    name_ = name;
    cc_ = attribute(75) * 10 + attribute(76);  // COMPUTE_CAPABILITY_MAJOR, _MINOR
    sm_count_ = attribute(16);                 // MULTIPROCESSOR_COUNT
    l2_bytes_ = attribute(38);                 // L2_CACHE_SIZE
    CHECK(cuDevicePrimaryCtxRetain, &context_, device_);
}

int Cuda::attribute(int which)
{
    int value = 0;
    CHECK(cuDeviceGetAttribute, &value, which, device_);
    return value;
}

size_t Cuda::free_bytes()
{
    size_t free = 0, total = 0;
    CHECK(cuMemGetInfo_v2, &free, &total);
    return free;
}

void* Cuda::allocate(size_t bytes)
{
    DevicePtr ptr = 0;
    CHECK(cuMemAlloc_v2, &ptr, bytes > 0 ? bytes : 1);
    return reinterpret_cast<void*>(ptr);
}

void Cuda::release(void* ptr) { CHECK(cuMemFree_v2, address(ptr)); }

void Cuda::copy_in(void* device, const void* host, size_t bytes)
{
    if (bytes == 0)
        return;
    CHECK(cuMemcpyHtoD_v2, address(device), host, bytes);
    // The copy returns when it has read `host`; streams that do not wait for the default one must find it
    // ended.
    CHECK(cuStreamSynchronize, nullptr);
}

void Cuda::copy_out(void* host, const void* device, size_t bytes)
{
    if (bytes > 0)
        CHECK(cuMemcpyDtoH_v2, host, address(device), bytes);
}

void Cuda::copy(void* to, const void* from, size_t bytes)
{
    CHECK(cuMemcpyDtoD_v2, address(to), address(from), bytes);
}

void Cuda::fill(void* device, unsigned char value, size_t bytes)
{
    CHECK(cuMemsetD8_v2, address(device), value, bytes);
}

Cuda::Fenced Cuda::allocate_fenced(size_t bytes)
{
    const AllocationProp prop = pages_of(device_);
    size_t page = 0;
    CHECK(cuMemGetAllocationGranularity, &page, &prop, 0);
    Fenced fenced;
    fenced.mapped = std::max((bytes + page - 1) / page, size_t{1}) * page;
    fenced.reserved = fenced.mapped + page;
    DevicePtr base = 0;
    CHECK(cuMemAddressReserve, &base, fenced.reserved, 0, 0, 0);
    fenced.base = reinterpret_cast<void*>(base);
    CHECK(cuMemCreate, &fenced.memory, fenced.mapped, &prop, 0);
    CHECK(cuMemMap, base, fenced.mapped, 0, fenced.memory, 0);
    AccessDesc access;
    access.location = prop.location;
    CHECK(cuMemSetAccess, base, fenced.mapped, &access, 1);
    return fenced;
}

void Cuda::release(const Fenced& fenced)
{
    CHECK(cuMemUnmap, address(fenced.base), fenced.mapped);
    CHECK(cuMemRelease, fenced.memory);
    CHECK(cuMemAddressFree, address(fenced.base), fenced.reserved);
}

void Cuda::wait() { CHECK(cuCtxSynchronize); }
void Cuda::wait(CUstream_st* stream) { CHECK(cuStreamSynchronize, stream); }

CUstream_st* Cuda::create_stream(bool blocking)
{
    CUstream_st* stream = nullptr;
    CHECK(cuStreamCreate, &stream, blocking ? 0 : 1);  // CU_STREAM_NON_BLOCKING
    return stream;
}

void Cuda::destroy(CUstream_st* stream) { CHECK(cuStreamDestroy_v2, stream); }

CUctx_st* Cuda::create_context()
{
    CUctx_st* context = nullptr;
    CHECK(cuCtxCreate_v2, &context, 0, device_);
    make_current(context_);
    return context;
}

void Cuda::destroy(CUctx_st* context) { CHECK(cuCtxDestroy_v2, context); }
void Cuda::make_current(CUctx_st* context) { CHECK(cuCtxSetCurrent, context); }

void Cuda::call_host(CUstream_st* stream, std::function<void()>& work)
{
    CHECK(
        cuLaunchHostFunc, stream, [](void* data) { (*static_cast<std::function<void()>*>(data))(); },
        &work);
}

CUevent_st* Cuda::create_event()
{
    CUevent_st* event = nullptr;
    CHECK(cuEventCreate, &event, 0);
    return event;
}

void Cuda::destroy(CUevent_st* event) { CHECK(cuEventDestroy_v2, event); }
void Cuda::record(CUevent_st* event, CUstream_st* stream) { CHECK(cuEventRecord, event, stream); }

double Cuda::milliseconds(CUevent_st* begin, CUevent_st* end)
{
    float time = 0;
    CHECK(cuEventSynchronize, end);
    CHECK(cuEventElapsedTime, &time, begin, end);
    return time;
}

CUgraphExec_st* Cuda::capture(CUstream_st* stream, const std::function<void()>& work, Capture mode)
{
    Graph* graph = nullptr;
    CUgraphExec_st* executable = nullptr;
    CHECK(cuStreamBeginCapture_v2, stream, static_cast<int>(mode));
    try {
        work();
    } catch (...) {
        cu.cuStreamEndCapture(stream, &graph);  // the stream serves others
        throw;
    }
    CHECK(cuStreamEndCapture, stream, &graph);
    CHECK(cuGraphInstantiateWithFlags, &executable, graph, 0);
    CHECK(cuGraphDestroy, graph);
    return executable;
}

void Cuda::launch(CUgraphExec_st* graph, CUstream_st* stream) { CHECK(cuGraphLaunch, graph, stream); }
void Cuda::destroy(CUgraphExec_st* graph) { CHECK(cuGraphExecDestroy, graph); }

}  // namespace hg::test
