// Memory: allocation, copies, fills, variables.
#include "runtime/runtime.hpp"

using namespace emu::runtime;

namespace {

// Row by row; the driver has no other way either.
CUresult copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                   size_t rows, cudaStream_t stream)
{
    for (size_t row = 0; row < rows; ++row)
        require(cuMemcpyAsync(address(to) + row * to_pitch, address(from) + row * from_pitch, width,
                              stream_of(stream)));
    return CUDA_SUCCESS;
}

CUresult set_rows(void* to, size_t pitch, int value, size_t width, size_t rows, cudaStream_t stream)
{
    for (size_t row = 0; row < rows; ++row)
        require(cuMemsetD8Async(address(to) + row * pitch, static_cast<unsigned char>(value), width,
                                stream_of(stream)));
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes)
{
    *pointer = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    return call([&] { return cuMemAlloc(reinterpret_cast<CUdeviceptr*>(pointer), bytes); });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height)
{
    return call(
        [&] { return cuMemAllocPitch(reinterpret_cast<CUdeviceptr*>(pointer), pitch, width, height, 16); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream)
{
    return call(
        [&] { return cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream_of(stream)); });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags)
{
    return call([&] { return cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(pointer), bytes, flags); });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes)
{
    return call([&] { return cuMemAllocHost(pointer, bytes); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags)
{
    return call([&] { return cuMemHostAlloc(pointer, bytes, flags); });
}

cudaError_t cudaFree(void* pointer)
{
    return call([&] { return pointer ? cuMemFree(address(pointer)) : CUDA_SUCCESS; });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream)
{
    return call([&] { return cuMemFreeAsync(address(pointer), stream_of(stream)); });
}

cudaError_t cudaFreeHost(void* pointer)
{
    return call([&] { return pointer ? cuMemFreeHost(pointer) : CUDA_SUCCESS; });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total)
{
    return call([&] { return cuMemGetInfo(free, total); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind)
{
    return call([&] { return cuMemcpy(address(to), address(from), bytes); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    return call([&] { return cuMemcpyAsync(address(to), address(from), bytes, stream_of(stream)); });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind)
{
    return call([&] {
        copy_rows(to, to_pitch, from, from_pitch, width, height, nullptr);
        return cuStreamSynchronize(nullptr);
    });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream)
{
    return call([&] { return copy_rows(to, to_pitch, from, from_pitch, width, height, stream); });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes)
{
    return call([&] { return cuMemsetD8(address(to), static_cast<unsigned char>(value), bytes); });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height)
{
    return call([&] {
        set_rows(to, pitch, value, width, height, nullptr);
        return cuStreamSynchronize(nullptr);
    });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return call([&] { return set_rows(to, pitch, value, width, height, stream); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream)
{
    return call([&] {
        return cuMemsetD8Async(address(to), static_cast<unsigned char>(value), bytes, stream_of(stream));
    });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind)
{
    return call([&] { return cuMemcpy(variable_of(symbol, nullptr) + offset, address(from), bytes); });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind)
{
    return call([&] { return cuMemcpy(address(to), variable_of(symbol, nullptr) + offset, bytes); });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind, cudaStream_t stream)
{
    return call([&] {
        return cuMemcpyAsync(variable_of(symbol, nullptr) + offset, address(from), bytes,
                             stream_of(stream));
    });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind, cudaStream_t stream)
{
    return call([&] {
        return cuMemcpyAsync(address(to), variable_of(symbol, nullptr) + offset, bytes, stream_of(stream));
    });
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes)
{
    return call([&] { return cuMemcpy(address(to), address(from), bytes); });
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol)
{
    return call([&] {
        *pointer = reinterpret_cast<void*>(variable_of(symbol, nullptr));
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol)
{
    return call([&] {
        variable_of(symbol, bytes);
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer)
{
    return call([&] {
        *attributes = {};
        unsigned kind = 0;
        if (cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(pointer)) !=
            CUDA_SUCCESS)
            return CUDA_SUCCESS;  // memory that the driver does not know
        attributes->type = static_cast<cudaMemoryType>(kind);
        attributes->device = current_device();
        attributes->devicePointer = const_cast<void*>(pointer);
        attributes->hostPointer = kind == CU_MEMORYTYPE_HOST ? const_cast<void*>(pointer) : nullptr;
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* memory, unsigned flags)
{
    return call(
        [&] { return cuMemHostGetDevicePointer(reinterpret_cast<CUdeviceptr*>(device), memory, flags); });
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags)
{
    return call([&] { return cuMemHostRegister(memory, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* memory)
{
    return call([&] { return cuMemHostUnregister(memory); });
}

}  // extern "C"
