// Settings and hints: those that change nothing here are accepted.
#include "runtime/runtime.hpp"

using namespace emu::runtime;

namespace {

thread_local unsigned device_flags = 0;

}  // namespace

extern "C" {

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    device_flags = flags;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags)
{
    *flags = device_flags | cudaDeviceMapHost;  // as all devices do
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit)
{
    return call([&] { return cuCtxGetLimit(value, static_cast<CUlimit>(limit)); });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config)
{
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}

// All devices are alike.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*)
{
    *device = 0;
    return cudaSuccess;
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind)
{
    return {x, y, z, w, kind};
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* memory)
{
    return call([&] { return cuMemHostGetFlags(flags, memory); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags)
{
    return call([&] { return cuStreamGetFlags(stream_of(stream), flags); });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id)
{
    return call([&] { return cuStreamGetId(stream_of(stream), id); });
}

// Managed memory is everywhere at once.
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
#else
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
#endif

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* stub, int blocks,
                                                      int threads)
{
    return call(
        [&] { return cuOccupancyAvailableDynamicSMemPerBlock(bytes, function_of(stub), blocks, threads); });
}

}  // extern "C"
