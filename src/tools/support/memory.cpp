#include "src/tools/support/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <new>

namespace hg::test {

void HostMemory::copy_in(void* to, const void* from, size_t bytes)
{
    if (bytes > 0)
        std::memcpy(to, from, bytes);
}

void HostMemory::copy_out(void* to, const void* from, size_t bytes) { copy_in(to, from, bytes); }

void HostMemory::fill(void* to, unsigned char value, size_t bytes)
{
    if (bytes > 0)
        std::memset(to, value, bytes);
}

Memory::Region HostMemory::allocate(size_t bytes, Guard guard)
{
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    Region region{nullptr, bytes, {}};
    region.fenced.mapped = (bytes + page - 1) / page * page;
    region.fenced.reserved = region.fenced.mapped + page;
    void* base = mmap(nullptr, region.fenced.reserved, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // Of nothing: qemu refuses what Linux takes.
    const bool is_open =
        region.fenced.mapped == 0 ||
        (base != MAP_FAILED && mprotect(base, region.fenced.mapped, PROT_READ | PROT_WRITE) == 0);
    if (base == MAP_FAILED || !is_open)
        throw std::bad_alloc();
    region.fenced.base = base;
    region.ptr = static_cast<char*>(base) + (guard == Guard::Fence ? region.fenced.mapped - bytes : 0);
    return region;
}

void HostMemory::release(const Region& region) { munmap(region.fenced.base, region.fenced.reserved); }

void DeviceMemory::copy(void* to, const void* from, size_t bytes)
{
    cuda_.copy(to, from, bytes);
    cuda_.wait(nullptr);
}

void DeviceMemory::fill(void* to, unsigned char value, size_t bytes)
{
    cuda_.fill(to, value, bytes);
    cuda_.wait(nullptr);
}

Memory::Region DeviceMemory::allocate(size_t bytes, Guard guard)
{
    if (guard == Guard::Pads)
        return {cuda_.allocate(bytes), bytes, {}};
    const Cuda::Fenced fenced = cuda_.allocate_fenced(bytes);
    return {static_cast<char*>(fenced.base) + fenced.mapped - bytes, bytes, fenced};
}

void DeviceMemory::release(const Region& region)
{
    if (region.fenced.base)
        cuda_.release(region.fenced);
    else
        cuda_.release(region.ptr);
}

Block::~Block()
{
    if (!memory_)
        return;
    // A kernel that faulted has destroyed the context: the failure is reported where it was seen.
    try {
        memory_->release(region_);
    } catch (const std::exception&) {
    }
}

}  // namespace hg::test
