// A libcuda.so.1 that answers as an H100 would and does nothing: what a call costs beside it is the
// library's own. Nothing is computed.
#include <cuda.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

int token;  // what handles and entry points point to

// Whatever is not below succeeds.
CUresult succeed() { return CUDA_SUCCESS; }

CUresult get_device(CUdevice* device, int)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult count_devices(int* count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult get_name(char* name, int length, CUdevice)
{
    std::strncpy(name, "a device that does nothing", static_cast<size_t>(length));
    return CUDA_SUCCESS;
}

CUresult get_attribute(int* value, CUdevice_attribute attribute, CUdevice)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2'619'000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 5120; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult retain(CUcontext* context, CUdevice)
{
    *context = reinterpret_cast<CUcontext>(&token);
    return CUDA_SUCCESS;
}

CUresult get_current(CUcontext* context) { return retain(context, 0); }

CUresult stream_context(CUstream, CUcontext* context) { return retain(context, 0); }

CUresult get_current_device(CUdevice* device) { return get_device(device, 0); }

// Addresses that nothing reads, as far apart as they are long.
CUresult allocate(CUdeviceptr* memory, size_t bytes)
{
    static CUdeviceptr next = CUdeviceptr{1} << 44;
    *memory = next;
    next += (bytes + 511) / 256 * 256;
    return CUDA_SUCCESS;
}

CUresult create_stream(CUstream* stream, unsigned)
{
    *stream = reinterpret_cast<CUstream>(&token);
    return CUDA_SUCCESS;
}

CUresult get_kernel(CUkernel* kernel, CUlibrary, const char*)
{
    *kernel = reinterpret_cast<CUkernel>(&token);
    return CUDA_SUCCESS;
}

CUresult get_function(CUfunction* function, CUkernel)
{
    *function = reinterpret_cast<CUfunction>(&token);
    return CUDA_SUCCESS;
}

// Takes IDLE_LOAD_MS milliseconds, where that is set.
CUresult load_library(CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*,
                      void**, unsigned)
{
    if (const char* ms = std::getenv("IDLE_LOAD_MS"))
        std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(ms)));
    *library = reinterpret_cast<CUlibrary>(&token);
    return CUDA_SUCCESS;
}

template <typename Function>
void* as_pointer(Function* function)
{
    return reinterpret_cast<void*>(function);
}

void* find(const char* name)
{
    const struct {
        const char* name;
        void* function;
    } known[] = {{"cuDeviceGet", as_pointer(get_device)},
                 {"cuDeviceGetCount", as_pointer(count_devices)},
                 {"cuDeviceGetName", as_pointer(get_name)},
                 {"cuDeviceGetAttribute", as_pointer(get_attribute)},
                 {"cuDevicePrimaryCtxRetain", as_pointer(retain)},
                 {"cuCtxGetCurrent", as_pointer(get_current)},
                 {"cuCtxGetDevice", as_pointer(get_current_device)},
                 {"cuMemAlloc", as_pointer(allocate)},
                 {"cuStreamGetCtx", as_pointer(stream_context)},
                 {"cuStreamCreate", as_pointer(create_stream)},
                 {"cuLibraryLoadData", as_pointer(load_library)},
                 {"cuLibraryGetKernel", as_pointer(get_kernel)},
                 {"cuKernelGetFunction", as_pointer(get_function)}};
    for (const auto& entry : known)
        if (!std::strcmp(entry.name, name))
            return entry.function;
    return as_pointer(succeed);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult
cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult*)
{
    *function = find(name);
    return CUDA_SUCCESS;
}
