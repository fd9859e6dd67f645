// Virtual memory management: addresses are reserved without access, memory is an anonymous file, and a
// mapping puts the one at the other. Behind a mapping lies nothing: kernels and the host fault there.
#include "driver/call.hpp"

#include <sys/mman.h>
#include <unistd.h>

using namespace emu::driver;

namespace {

constexpr size_t granularity = size_t{2} << 20;

struct Physical {
    int file;
    size_t bytes;
    CUmemAllocationProp properties;
    int uses;  // the handle and its mappings
};

struct Mapping {
    size_t bytes;
    CUmemGenericAllocationHandle memory;
};

// Never destroyed, as the rest of the driver.
auto& reservations = *new std::map<uint64_t, size_t>;  // bytes by address
auto& memories = *new std::map<CUmemGenericAllocationHandle, Physical>;
auto& mappings = *new std::map<uint64_t, Mapping>;  // by address

bool whole(size_t bytes) { return bytes > 0 && bytes % granularity == 0; }

bool inside_reservation(uint64_t address, size_t bytes)
{
    const auto after = reservations.upper_bound(address);
    if (after == reservations.begin())
        return false;
    const auto& [base, size] = *std::prev(after);
    return address - base + bytes <= size;
}

bool is_mapped(uint64_t address, size_t bytes)
{
    const auto after = mappings.lower_bound(address + bytes);
    if (after == mappings.begin())
        return false;
    const auto& [base, mapping] = *std::prev(after);
    return base + mapping.bytes > address;
}

void drop_use(CUmemGenericAllocationHandle handle)
{
    const auto found = memories.find(handle);
    if (--found->second.uses > 0)
        return;
    close(found->second.file);
    memories.erase(found);
}

void map_nothing(uint64_t address, size_t bytes)
{
    mmap(bytes_at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
}

Device& device_of(const CUmemLocation& location)
{
    require(location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_INVALID_VALUE);
    return get_device(location.id);
}

void check(const CUmemAllocationProp& properties)
{
    require(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED, CUDA_ERROR_INVALID_VALUE);
    require(properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    device_of(properties.location);
}

// Kernels may touch a mapping from the first cuMemSetAccess on.
void set_access(uint64_t address, Mapping& mapping, const CUmemAccessDesc& access)
{
    Device& device = device_of(access.location);
    const int protection = access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                           : access.flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                              : PROT_NONE;
    mprotect(bytes_at(address), mapping.bytes, protection);
    Driver& d = driver();
    if (protection == PROT_NONE) {
        device.machine.memory.disown(bytes_at(address));
        d.allocations.erase(address);
        return;
    }
    device.machine.memory.adopt(bytes_at(address), mapping.bytes);
    d.allocations[address] = {MemoryKind::Mapped, mapping.bytes, nullptr, &device, 0, mapping.memory};
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags)
{
    return call("cuMemGetAllocationGranularity", Needs::Driver, [&] {
        require(properties != nullptr, CUDA_ERROR_INVALID_VALUE);
        check(*properties);
        out(bytes) = granularity;
    });
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags)
{
    return call("cuMemAddressReserve", Needs::Driver, [&] {
        require(address && whole(bytes) && flags == 0, CUDA_ERROR_INVALID_VALUE);
        require((alignment & (alignment - 1)) == 0, CUDA_ERROR_INVALID_VALUE);
        const size_t unit = std::max(alignment, granularity);
        void* memory =
            mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        require(memory != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
        const uint64_t begin = emu::driver::address(memory), base = (begin + unit - 1) / unit * unit;
        if (base > begin)
            munmap(memory, base - begin);
        munmap(bytes_at(base + bytes), begin + unit - base);
        reservations[base] = bytes;
        *address = base;
    });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    return call("cuMemAddressFree", Needs::Driver, [&] {
        const auto found = reservations.find(address);
        require(found != reservations.end() && found->second == bytes, CUDA_ERROR_INVALID_VALUE);
        require(!is_mapped(address, bytes), CUDA_ERROR_INVALID_VALUE);
        munmap(bytes_at(address), bytes);
        reservations.erase(found);
    });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags)
{
    return call("cuMemCreate", Needs::Driver, [&] {
        require(handle && properties && whole(bytes) && flags == 0, CUDA_ERROR_INVALID_VALUE);
        check(*properties);
        const emu::Memory& memory = device_of(properties->location).machine.memory;
        require(static_cast<int64_t>(bytes) <= memory.limit() - memory.used(), CUDA_ERROR_OUT_OF_MEMORY);
        const int file = memfd_create("device memory", MFD_CLOEXEC);
        require(file >= 0, CUDA_ERROR_OUT_OF_MEMORY);
        if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
            close(file);
            throw Failure{CUDA_ERROR_OUT_OF_MEMORY, ""};
        }
        *handle = driver().next_id++;
        memories[*handle] = {file, bytes, *properties, 1};
    });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return call("cuMemRelease", Needs::Driver, [&] {
        require(memories.count(handle) == 1, CUDA_ERROR_INVALID_VALUE);
        drop_use(handle);
    });
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    return call("cuMemMap", Needs::Driver, [&] {
        const auto memory = memories.find(handle);
        require(memory != memories.end() && whole(bytes) && flags == 0, CUDA_ERROR_INVALID_VALUE);
        require(address % granularity == 0 && offset % granularity == 0 &&
                    offset + bytes <= memory->second.bytes,
                CUDA_ERROR_INVALID_VALUE);
        require(inside_reservation(address, bytes) && !is_mapped(address, bytes), CUDA_ERROR_INVALID_VALUE);
        void* mapped = mmap(bytes_at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                            memory->second.file, static_cast<off_t>(offset));
        require(mapped != MAP_FAILED, CUDA_ERROR_MAP_FAILED);
        mappings[address] = {bytes, handle};
        ++memory->second.uses;
    });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    return call("cuMemUnmap", Needs::Driver, [&] {
        const auto found = mappings.find(address);
        require(found != mappings.end() && found->second.bytes == bytes, CUDA_ERROR_INVALID_VALUE);
        finish_everything();
        for (const auto& device : driver().devices)
            device->machine.memory.disown(bytes_at(address));
        driver().allocations.erase(address);
        map_nothing(address, bytes);
        drop_use(found->second.memory);
        mappings.erase(found);
    });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count)
{
    return call("cuMemSetAccess", Needs::Driver, [&] {
        require(access && count > 0 && whole(bytes), CUDA_ERROR_INVALID_VALUE);
        const auto first = mappings.find(address), last = mappings.lower_bound(address + bytes);
        require(first != mappings.end(), CUDA_ERROR_INVALID_VALUE);
        for (auto mapping = first; mapping != last; ++mapping)
            for (size_t i = 0; i < count; ++i)
                set_access(mapping->first, mapping->second, access[i]);
    });
}
