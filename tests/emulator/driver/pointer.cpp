// What is known of a pointer.
#include "driver/call.hpp"

#include <cstring>

using namespace emu::driver;

namespace {

template <typename T>
void put(void* data, T value)
{
    std::memcpy(data, &value, sizeof value);
}

bool of_host(MemoryKind kind) { return kind == MemoryKind::Host || kind == MemoryKind::Registered; }

void tell(void* data, CUpointer_attribute attribute, uint64_t pointer)
{
    const auto found = find_memory(pointer);
    require(found.has_value(), CUDA_ERROR_INVALID_VALUE);
    const auto& [base, allocation] = *found;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, allocation.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put(data, static_cast<unsigned>(of_host(allocation.kind) ? CU_MEMORYTYPE_HOST
                                                                        : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(data, CUdeviceptr{pointer});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        require(of_host(allocation.kind) || allocation.kind == MemoryKind::Managed,
                CUDA_ERROR_INVALID_VALUE);
        return put(data, pointer);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(data, 1u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put(data, static_cast<unsigned long long>(allocation.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(data, allocation.kind == MemoryKind::Managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, allocation.device->ordinal);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put(data, false);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, allocation.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, true);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put(data, 0ull);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put(data, false);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(data, CUmemoryPool{});
    default:
        throw Failure{CUDA_ERROR_NOT_SUPPORTED, "unknown pointer attribute " + std::to_string(attribute)};
    }
}

// As for unregistered host memory.
void tell_unknown(void* data, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, -2);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put(data, 0u);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, false);
    default: return put(data, uint64_t{0});
    }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    return call("cuPointerGetAttribute", [&](CUctx_st&) {
        require(data != nullptr, CUDA_ERROR_INVALID_VALUE);
        tell(data, attribute, pointer);
    });
}

// A pointer that the driver does not know is no error here.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer)
{
    return call("cuPointerGetAttributes", [&](CUctx_st&) {
        require(attributes && data, CUDA_ERROR_INVALID_VALUE);
        const bool known = find_memory(pointer).has_value();
        for (unsigned i = 0; i < count; ++i)
            known ? tell(data[i], attributes[i], pointer) : tell_unknown(data[i], attributes[i]);
    });
}
