// Devices: properties, attributes, versions, entry points of the driver.
#include "driver/control.hpp"
#include "runtime/runtime.hpp"

#include <cuda_profiler_api.h>

#include <cstring>

using namespace emu::runtime;

namespace {

int attribute(CUdevice_attribute which, CUdevice device)
{
    int value = 0;
    require(cuDeviceGetAttribute(&value, which, device));
    return value;
}

// The limits that programs look at; the rest stays zero.
void fill(cudaDeviceProp& p, CUdevice device)
{
    const auto get = [device](CUdevice_attribute which) { return attribute(which, device); };
    require(cuDeviceGetName(p.name, sizeof p.name, device));
    require(cuDeviceTotalMem(&p.totalGlobalMem, device));
    p.major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p.minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p.multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p.warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p.sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p.sharedMemPerBlockOptin = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p.sharedMemPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p.regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p.regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p.maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p.maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p.maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    p.maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    p.maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    p.maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    p.maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    p.maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    p.l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    p.unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
    p.managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    p.canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
    p.hostRegisterSupported = get(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    p.canUseHostPointerForRegisteredMem = get(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    p.totalConstMem = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    p.memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    p.textureAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    p.texturePitchAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    p.surfaceAlignment = get(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
    p.asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    p.streamPrioritiesSupported = get(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
    p.globalL1CacheSupported = get(CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED);
    p.localL1CacheSupported = get(CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED);
    p.memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    p.maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    p.reservedSharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    p.pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
#if CUDART_VERSION < 13000
    p.clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    p.memoryClockRate = get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
#endif
    p.clusterLaunch = p.major >= 9;
    p.concurrentKernels = 1;
}

}  // namespace

namespace emu::runtime {

int answer_not_supported(const char* name)
{
    emu_not_emulated(name);
    return answer(CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace emu::runtime

extern "C" {

cudaError_t cudaGetDeviceCount(int* count)
{
    const CUresult result = cuInit(0);
    return answer(result == CUDA_SUCCESS ? cuDeviceGetCount(count) : result);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device)
{
    return call([&] {
        std::memset(properties, 0, sizeof *properties);
        fill(*properties, device);
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device)
{
    return call(
        [&] { return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device); });
}

cudaError_t cudaDeviceSynchronize()
{
    return call([] { return cuCtxSynchronize(); });
}

cudaError_t cudaDeviceReset()
{
    return call([] { return cuCtxSynchronize(); });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value)
{
    return call([&] { return cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest)
{
    return call([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device)
{
    return call([&] { return cuDeviceGetPCIBusId(text, length, device); });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer)
{
    return call([&] { return cuDeviceCanAccessPeer(can, device, peer); });
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaDriverGetVersion(int* version) { return answer(cuDriverGetVersion(version)); }

cudaError_t cudaRuntimeGetVersion(int* version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status)
{
    return call([&] {
        CUdriverProcAddressQueryResult found{};
        const CUresult result = cuGetProcAddress(name, function, static_cast<int>(version), flags, &found);
        if (status)
            *status = static_cast<cudaDriverEntryPointQueryResult>(found);
        return result;
    });
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status)
{
    return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, status);
}

}  // extern "C"
