// Device memory and where addresses lead.
#include "core/scheduler.hpp"
#include "core/state.hpp"

#include <sys/mman.h>

#include <cstdlib>

namespace emu {
namespace {

// New memory holds NaN, so that a kernel that reads what nobody wrote is found out.
constexpr size_t most_poison = size_t{64} << 20;
// Behind each allocation, so that a step too far does not end in the next one.
constexpr size_t guard_bytes = 1 << 16;

// In large pages, where there are any: most of the time that a new workspace takes is page faults.
void use_large_pages(void* base, size_t bytes)
{
    constexpr uintptr_t page = 1 << 21;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(base) + page - 1) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(base) + bytes) / page * page;
    if (begin < end)
        madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

uint64_t window(uint64_t address) { return address >> 32 << 32; }

[[noreturn]] void outside(Exec& x, const char* space, uint64_t address, int bytes, uint64_t size, int lane)
{
    x.lanes = Mask{1} << lane;
    x.fault("out-of-bounds", std::to_string(bytes) + " bytes at " + hexadecimal(address) + " of " + space +
                                 " memory of " + std::to_string(size) + " bytes");
}

// Alignments are powers of two.
void check_alignment(Exec& x, uint64_t address, int alignment, int lane)
{
    if ((address & (static_cast<uint64_t>(alignment) - 1)) == 0)
        return;
    x.lanes = Mask{1} << lane;
    x.fault("misaligned",
            "address " + hexadecimal(address) + " is not a multiple of " + std::to_string(alignment));
}

Location resolve_global(Exec& x, uint64_t address, int bytes, int lane)
{
    Location location;
    location.bytes = reinterpret_cast<uint8_t*>(address);
    if (x.machine.memory.contains(address, bytes))
        return location;
    x.lanes = Mask{1} << lane;
    uint64_t base = 0;
    size_t size = 0;
    std::string text = std::to_string(bytes) + " bytes at " + hexadecimal(address) + " of global memory";
    if (x.machine.memory.find(address, &base, &size))
        text +=
            ", " + std::to_string(address - base) + " bytes into an allocation of " + std::to_string(size);
    else if (x.machine.memory.below(address, &base, &size))
        text += ", " + std::to_string(address - base - size) +
                " bytes behind the end of an allocation of " + std::to_string(size);
    x.fault("out-of-bounds", text);
}

}  // namespace

Memory::~Memory()
{
    for (const auto& [base, block] : blocks_)
        if (block.owned)
            std::free(reinterpret_cast<void*>(base));
}

void* Memory::allocate(size_t bytes, size_t alignment)
{
    if (bytes == 0 || static_cast<int64_t>(bytes) < 0 || static_cast<int64_t>(bytes) > limit_ - used_)
        return nullptr;
    void* base = nullptr;
    if (posix_memalign(&base, alignment, bytes + guard_bytes))
        return nullptr;
    const size_t poisoned = std::min(bytes, most_poison);
    use_large_pages(base, poisoned);
    std::memset(base, 0xff, poisoned);
    blocks_[reinterpret_cast<uint64_t>(base)] = {bytes, true};
    used_ += static_cast<int64_t>(bytes);
    return base;
}

bool Memory::release(void* base)
{
    const auto found = blocks_.find(reinterpret_cast<uint64_t>(base));
    if (found == blocks_.end() || !found->second.owned)
        return false;
    used_ -= static_cast<int64_t>(found->second.bytes);
    blocks_.erase(found);
    last_base_ = last_size_ = 0;
    std::free(base);
    return true;
}

bool Memory::contains(uint64_t address, size_t bytes) const
{
    uint64_t base;
    size_t size;
    if (address - last_base_ < last_size_)
        return bytes <= last_size_ - (address - last_base_);
    if (!find(address, &base, &size))
        return false;
    last_base_ = base;
    last_size_ = size;
    return bytes <= size - (address - base);
}

bool Memory::find(uint64_t address, uint64_t* base, size_t* size) const
{
    return below(address, base, size) && address - *base < *size;
}

bool Memory::below(uint64_t address, uint64_t* base, size_t* size) const
{
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin())
        return false;
    --block;
    *base = block->first;
    *size = block->second.bytes;
    return true;
}

Location resolve_shared(Exec& x, uint32_t address, int bytes, int alignment, const char* what)
{
    const int lane = x.lanes ? __builtin_ctz(x.lanes) : 0;
    check_alignment(x, address, alignment, lane);
    const uint32_t rank = address >> rank_shift;
    const uint32_t offset = (address & ((1u << rank_shift) - 1)) - shared_base;
    const auto& ctas = x.cta.cluster->ctas;
    if (rank >= ctas.size())
        x.fault("out-of-bounds", std::string(what) + " at shared address " + hexadecimal(address) +
                                     " of CTA " + std::to_string(rank) + " in a cluster of " +
                                     std::to_string(ctas.size()));
    Cta& cta = *ctas[rank];
    if (offset > cta.shared.size() || static_cast<size_t>(bytes) > cta.shared.size() - offset)
        x.fault("out-of-bounds", std::string(what) + " of " + std::to_string(bytes) +
                                     " bytes at shared address " + hexadecimal(address) + ", offset " +
                                     std::to_string(static_cast<int32_t>(offset)) + " of " +
                                     std::to_string(cta.shared.size()));
    if (&cta != &x.cta && cta.done())
        x.hazard("exited-peer",
                 std::string(what) + " in shared memory of CTA " + std::to_string(rank) +
                     " of the cluster, which has exited",
                 x.lanes);
    return {ptx::Space::Shared, &cta, offset, cta.shared.data() + offset};
}

Location resolve(Exec& x, ptx::Space space, uint64_t address, int bytes, int alignment, int lane)
{
    if (space == ptx::Space::None) {
        const uint64_t in = window(address);
        space = in == shared_window      ? ptx::Space::Shared
                : in == local_window     ? ptx::Space::Local
                : in == parameter_window ? ptx::Space::Param
                                         : ptx::Space::Global;
        if (space == ptx::Space::Shared)
            return resolve_shared(x, static_cast<uint32_t>(address), bytes, alignment, "access");
        if (space != ptx::Space::Global)
            address -= in;
    }
    check_alignment(x, address, alignment, lane);
    if (space == ptx::Space::Shared) {
        if (address >> 32)
            outside(x, "shared", address, bytes, x.cta.shared.size(), lane);
        const Location location = resolve_shared(x, static_cast<uint32_t>(address), bytes, 1, "access");
        if (location.cta != &x.cta) {
            x.lanes = Mask{1} << lane;
            x.fault("out-of-bounds", "shared::cta access to CTA " + std::to_string(location.cta->rank) +
                                         " of the cluster at " + hexadecimal(address));
        }
        return location;
    }
    if (space != ptx::Space::Local && space != ptx::Space::Param)
        return resolve_global(x, address, bytes, lane);
    const bool local = space == ptx::Space::Local;
    const uint64_t size = local ? x.warp.local.size() / warp_lanes : x.grid.launch.parameters.size();
    if (address > size || static_cast<uint64_t>(bytes) > size - address)
        outside(x, local ? "local" : "parameter", address, bytes, size, lane);
    uint8_t* bytes_at = local ? x.warp.local.data() + lane * size : x.grid.launch.parameters.data();
    return {space, nullptr, static_cast<uint32_t>(address), bytes_at + address};
}

}  // namespace emu
