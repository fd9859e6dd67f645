// Allocations: device, managed and pinned host memory.
#include "driver/call.hpp"

#include <cstdlib>

using namespace emu::driver;

namespace {

constexpr size_t page = 4096;

void* allocate_host(size_t bytes)
{
    void* memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    return memory;
}

void let_kernels_access(uint64_t base, size_t bytes)
{
    for (const auto& device : driver().devices)
        device->machine.memory.adopt(bytes_at(base), bytes);
}

// What is still to be done may use the memory.
void free_kind(uint64_t base, bool (*fits)(MemoryKind))
{
    finish_everything();
    const auto found = driver().allocations.find(base);
    require(found != driver().allocations.end() && fits(found->second.kind), CUDA_ERROR_INVALID_VALUE);
    release_memory(base);
}

void free_device(uint64_t base)
{
    free_kind(base,
              [](MemoryKind kind) { return kind == MemoryKind::Device || kind == MemoryKind::Managed; });
}

void allocate_async(CUdeviceptr* address, size_t bytes, CUstream stream)
{
    require(address && bytes > 0, CUDA_ERROR_INVALID_VALUE);
    CUstream_st& on = get_stream(stream);
    if (on.capture)
        throw Failure{CUDA_ERROR_NOT_SUPPORTED, "allocation nodes of graphs are not emulated"};
    *address = emu::driver::address(allocate_memory(*on.context, bytes, MemoryKind::Device, 0));
}

}  // namespace

namespace emu::driver {

std::optional<Found> find_memory(uint64_t address)
{
    Driver& d = driver();
    const auto after = d.allocations.upper_bound(address);
    if (after != d.allocations.begin()) {
        const Found found{std::prev(after)->first, std::prev(after)->second};
        if (address < found.end())
            return found;
    }
    for (const auto& device : d.devices) {
        Found variable{0, {MemoryKind::Device, 0, current_context_or_null(), device.get(), 0, 0}};
        if (device->machine.memory.find(address, &variable.base, &variable.allocation.bytes))
            return variable;
    }
    return std::nullopt;
}

void* allocate_memory(CUctx_st& context, size_t bytes, MemoryKind kind, unsigned flags)
{
    Device& device = *context.device;
    const bool host = kind == MemoryKind::Host;
    void* memory = host ? allocate_host(bytes) : device.machine.memory.allocate(bytes);
    require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    Driver& d = driver();
    d.allocations[address(memory)] = {kind, bytes, &context, &device, flags, d.next_id++};
    if (host)
        let_kernels_access(address(memory), bytes);
    return memory;
}

void release_memory(uint64_t base)
{
    Driver& d = driver();
    const Allocation allocation = d.allocations.at(base);
    d.allocations.erase(base);
    if (allocation.kind == MemoryKind::Device || allocation.kind == MemoryKind::Managed) {
        allocation.device->machine.memory.release(bytes_at(base));
        return;
    }
    for (const auto& device : d.devices)
        device->machine.memory.disown(bytes_at(base));
    if (allocation.kind == MemoryKind::Host)
        std::free(bytes_at(base));
}

}  // namespace emu::driver

// ---- Device memory ----------------------------------------------------------------------------------
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes)
{
    return call("cuMemAlloc", [&](CUctx_st& context) {
        require(address && bytes > 0, CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        *address = emu::driver::address(allocate_memory(context, bytes, MemoryKind::Device, 0));
    });
}

CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element)
{
    return call("cuMemAllocPitch", [&](CUctx_st& context) {
        require(address && pitch && width > 0 && height > 0, CUDA_ERROR_INVALID_VALUE);
        require(element == 4 || element == 8 || element == 16, CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        *pitch = (width + 511) / 512 * 512;
        *address = emu::driver::address(allocate_memory(context, *pitch * height, MemoryKind::Device, 0));
    });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags)
{
    return call("cuMemAllocManaged", [&](CUctx_st& context) {
        require(address && bytes > 0, CUDA_ERROR_INVALID_VALUE);
        require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST, CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        *address = emu::driver::address(allocate_memory(context, bytes, MemoryKind::Managed, flags));
    });
}

CUresult cuMemFree(CUdeviceptr address)
{
    return call("cuMemFree", [&](CUctx_st&) {
        forbid_in_capture();
        if (address)
            free_device(address);
    });
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream)
{
    return call("cuMemAllocAsync", [&](CUctx_st&) { allocate_async(address, bytes, stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    return call("cuMemFreeAsync", [&](CUctx_st&) {
        if (get_stream(stream).capture)
            throw Failure{CUDA_ERROR_NOT_SUPPORTED, "allocation nodes of graphs are not emulated"};
        if (address)
            free_device(address);
    });
}

CUresult cuMemGetInfo(size_t* free, size_t* total)
{
    return call("cuMemGetInfo", [&](CUctx_st& context) {
        const emu::Memory& memory = context.device->machine.memory;
        out(total) = static_cast<size_t>(memory.limit());
        out(free) = static_cast<size_t>(memory.limit() - memory.used());
    });
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address)
{
    return call("cuMemGetAddressRange", [&](CUctx_st&) {
        const auto found = find_memory(address);
        require(found.has_value(), CUDA_ERROR_NOT_FOUND);
        if (base)
            *base = found->base;
        if (bytes)
            *bytes = found->allocation.bytes;
    });
}

// ---- Host memory ------------------------------------------------------------------------------------
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags)
{
    return call("cuMemHostAlloc", [&](CUctx_st& context) {
        constexpr unsigned known =
            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
        require(memory && bytes > 0 && !(flags & ~known), CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        *memory = allocate_memory(context, bytes, MemoryKind::Host, flags);
    });
}

CUresult cuMemAllocHost(void** memory, size_t bytes)
{
    return call("cuMemAllocHost", [&](CUctx_st& context) {
        require(memory && bytes > 0, CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        *memory = allocate_memory(context, bytes, MemoryKind::Host, 0);
    });
}

CUresult cuMemFreeHost(void* memory)
{
    return call("cuMemFreeHost", [&](CUctx_st&) {
        forbid_in_capture();
        if (memory)
            free_kind(address(memory), [](MemoryKind kind) { return kind == MemoryKind::Host; });
    });
}

CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned flags)
{
    return call("cuMemHostRegister", [&](CUctx_st& context) {
        require(memory && bytes > 0, CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        Driver& d = driver();
        const auto next = d.allocations.lower_bound(address(memory));
        const bool overlaps = find_memory(address(memory)) ||
                              (next != d.allocations.end() && next->first < address(memory) + bytes);
        require(!overlaps, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        d.allocations[address(memory)] = {MemoryKind::Registered, bytes, &context,
                                          context.device,         flags, d.next_id++};
        let_kernels_access(address(memory), bytes);
    });
}

CUresult cuMemHostUnregister(void* memory)
{
    return call("cuMemHostUnregister", [&](CUctx_st&) {
        require(memory != nullptr, CUDA_ERROR_INVALID_VALUE);
        forbid_in_capture();
        const auto found = driver().allocations.find(address(memory));
        require(found != driver().allocations.end() && found->second.kind == MemoryKind::Registered,
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        finish_everything();
        release_memory(address(memory));
    });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* pointer, void* memory, unsigned flags)
{
    return call("cuMemHostGetDevicePointer", [&](CUctx_st&) {
        require(memory && flags == 0, CUDA_ERROR_INVALID_VALUE);
        const auto found = find_memory(address(memory));
        require(found && found->allocation.kind != MemoryKind::Device, CUDA_ERROR_INVALID_VALUE);
        out(pointer) = address(memory);
    });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* memory)
{
    return call("cuMemHostGetFlags", [&](CUctx_st&) {
        const auto found = find_memory(address(memory));
        require(found && found->allocation.kind == MemoryKind::Host, CUDA_ERROR_INVALID_VALUE);
        out(flags) = found->allocation.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    });
}
