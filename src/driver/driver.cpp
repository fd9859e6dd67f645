#include "src/driver/driver.hpp"

#include "src/driver/calls.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <memory>
#include <new>

namespace hg::driver {
namespace {

const char* resolve(Calls& calls)
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "libcuda.so.1 is not installed";
    using GetProcAddress =
        CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    if (!get)
        return "the CUDA driver is older than 12.0";
    void* address = nullptr;
#define HGEMM_RESOLVE(name)                                                                                \
    if (get(#name, &address, abi, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS || !address)       \
        return "the CUDA driver has no " #name;                                                            \
    calls.name = reinterpret_cast<decltype(calls.name)>(address);
    HGEMM_DRIVER_CALLS(HGEMM_RESOLVE)
#undef HGEMM_RESOLVE
    if (get("cuStreamGetCaptureInfo", &address, abi, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) !=
            CUDA_SUCCESS ||
        !address)
        return "the CUDA driver has no cuStreamGetCaptureInfo";
    calls.cuStreamGetCaptureInfo = reinterpret_cast<StreamGetCaptureInfo>(address);
    constexpr int abi_of_green_contexts = 12040;
    calls.cuStreamGetCtx_v2 = reinterpret_cast<StreamGetContexts>(dlsym(library, "cuStreamGetCtx_v2"));
    if (get("cuGreenCtxGetDevResource", &address, abi_of_green_contexts, CU_GET_PROC_ADDRESS_DEFAULT,
            nullptr) == CUDA_SUCCESS)
        calls.cuGreenCtxGetDevResource = reinterpret_cast<GreenCtxGetDevResource>(address);
    if (get("cuCtxGetDevResource", &address, abi_of_green_contexts, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) ==
        CUDA_SUCCESS)
        calls.cuCtxGetDevResource = reinterpret_cast<CtxGetDevResource>(address);
    calls.started = calls.cuInit(0);
    return nullptr;
}

// Bytes a second, by clock and bus; 0 where the driver does not say.
int64_t memory_bandwidth(CUdevice device)
{
    int khz = 0, bits = 0;
    if (calls().cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) != CUDA_SUCCESS ||
        calls().cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) !=
            CUDA_SUCCESS)
        return 0;
    return int64_t{2} * khz * 1000 * bits / 8;  // both edges of the clock
}

}  // namespace

const Calls& calls()
{
    static const Calls table = [] {
        Calls c{};
        c.absent = resolve(c);
        return c;
    }();
    return table;
}

Status check(CUresult result, const char* call, Status status)
{
    if (result == CUDA_SUCCESS)
        return ok;
    const char* text = nullptr;
    calls().cuGetErrorString(result, &text);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        status = HGEMM_STATUS_ALLOC_FAILED;
    return fail(status, "%s answered %d (%s)", call, static_cast<int>(result),
                text ? text : "unknown error");
}

Status count_devices(int* count, const char** reason)
{
    *count = 0;
    *reason = calls().absent;
    if (*reason)
        return ok;
    const bool no_device =
        calls().started == CUDA_ERROR_NO_DEVICE || calls().started == CUDA_ERROR_STUB_LIBRARY;
    *reason = "the CUDA driver sees no device";
    if (no_device)
        return ok;
    if (calls().started != CUDA_SUCCESS)
        return check(calls().started, "cuInit");
    return check(calls().cuDeviceGetCount(count), "cuDeviceGetCount");
}

Status check_unserved() { return ok; }

Status current_context(void** context, int* ordinal)
{
    CUcontext current = nullptr;
    Status status = check(calls().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    *context = current;
    CUdevice device = 0;
    if (status == ok && current)
        status = check(calls().cuCtxGetDevice(&device), "cuCtxGetDevice");
    *ordinal = device;
    return status;
}

Status retain_primary(int ordinal, Primary& primary)
{
    CUdevice device;
    Status status = check(calls().cuDeviceGet(&device, ordinal), "cuDeviceGet");
    CUcontext context = nullptr;
    if (status == ok)
        status = check(calls().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    if (status == ok)
        primary = {context, device};
    return status;
}

void release_primary(const Primary& primary)
{
    if (primary.context)
        calls().cuDevicePrimaryCtxRelease(primary.device);
}

Status describe(int ordinal, Device& device)
{
    CUdevice handle;
    Status status = check(calls().cuDeviceGet(&handle, ordinal), "cuDeviceGet");
    if (status != ok)
        return status;
    int major = 0, minor = 0, l2 = 0;
    const struct {
        CUdevice_attribute attribute;
        int* value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &device.sm_count},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &device.smem_per_block},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
    };
    for (const auto& w : wanted)
        if (Status s =
                check(calls().cuDeviceGetAttribute(w.value, w.attribute, handle), "cuDeviceGetAttribute");
            s != ok)
            return s;
    device.ordinal = ordinal;
    device.cc = major * 10 + minor;
    device.l2_bytes = l2;
    device.memory_bandwidth = memory_bandwidth(handle);
    return check(calls().cuDeviceGetName(device.name, sizeof device.name, handle), "cuDeviceGetName");
}

Scope::Scope(void* context)
{
    if (!context)
        return;
    CUcontext current = nullptr;
    calls().cuCtxGetCurrent(&current);
    if (current == context)
        return;
    status_ = check(calls().cuCtxPushCurrent(static_cast<CUcontext>(context)), "cuCtxPushCurrent");
    pushed_ = status_ == ok;
}

Scope::~Scope()
{
    CUcontext popped;
    if (pushed_)
        calls().cuCtxPopCurrent(&popped);
}

Status allocate(size_t bytes, void** memory)
{
    const BesideCaptures beside_captures;
    CUdeviceptr address = 0;
    const Status status = check(calls().cuMemAlloc(&address, bytes), "cuMemAlloc");
    *memory = reinterpret_cast<void*>(address);
    return status;
}

void release(void* memory)
{
    if (!memory)
        return;
    const BesideCaptures beside_captures;
    calls().cuMemFree(reinterpret_cast<CUdeviceptr>(memory));
}

// By a copy, which needs no SM: other kernels may hold all. On a new stream: the default one may be busy,
// and non-blocking streams do not wait for it.
Status clear(void* memory, size_t bytes)
{
    const BesideCaptures beside_captures;
    const std::unique_ptr<char[]> zeros(new (std::nothrow) char[bytes]());
    if (!zeros)
        return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for %zu zeros", bytes);
    CUstream stream = nullptr;
    Status status = check(calls().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (status != ok)
        return status;
    status =
        check(calls().cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(memory), zeros.get(), bytes, stream),
              "cuMemcpyHtoDAsync");
    if (status == ok)
        status = check(calls().cuStreamSynchronize(stream), "cuStreamSynchronize");
    calls().cuStreamDestroy(stream);
    return status;
}

namespace {

// Asks the context, not its default stream: naming that one ends the capture of every blocking stream.
Status find_current_owner(StreamOwner& owner)
{
    CUcontext context = nullptr;
    const Status status = check(calls().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    owner.context = context;
    SmResource resource{};
    if (status == ok && calls().cuCtxGetDevResource &&
        calls().cuCtxGetDevResource(context, &resource, sm_resource) == CUDA_SUCCESS)
        owner.sm_count = static_cast<int>(resource.sm_count);
    return status;
}

}  // namespace

Status find_owner(hgemm_stream_t stream, StreamOwner& owner)
{
    owner = {};
    if (is_special(stream))
        return find_current_owner(owner);
    const auto is_no_stream = [](CUresult result) {
        return result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_VALUE;
    };
    CUcontext context = nullptr, primary = nullptr;
    const CUresult result = calls().cuStreamGetCtx(stream, &context);
    if (is_no_stream(result))
        return ok;
    Status status = check(result, "cuStreamGetCtx");
    owner.context = context;
    if (status != ok || !calls().cuStreamGetCtx_v2 || !calls().cuGreenCtxGetDevResource)
        return status;
    GreenContext green = nullptr;
    status = check(calls().cuStreamGetCtx_v2(stream, &primary, &green), "cuStreamGetCtx_v2");
    if (status != ok || !green)
        return status;
    SmResource resource{};
    status =
        check(calls().cuGreenCtxGetDevResource(green, &resource, sm_resource), "cuGreenCtxGetDevResource");
    owner.primary = primary;
    owner.sm_count = static_cast<int>(resource.sm_count);
    return status;
}

}  // namespace hg::driver
