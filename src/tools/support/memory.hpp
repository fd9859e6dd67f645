// Where operands lie: memory of the host or of the GPU, behind one interface.
#pragma once

#include "src/tools/support/cuda_driver.hpp"

#include <cstddef>
#include <utility>

namespace hg::test {

// How an allocation is protected against being left: by NaN pads, compared after the call, or by lying
// directly before an address that faults.
enum class Guard { Pads, Fence };

class Memory {
public:
    virtual ~Memory() = default;
    virtual bool on_device() const = 0;
    virtual void copy_in(void* to, const void* from, size_t bytes) = 0;
    virtual void copy_out(void* to, const void* from, size_t bytes) = 0;
    virtual void copy(void* to, const void* from, size_t bytes) = 0;  // within the memory
    virtual void fill(void* to, unsigned char value, size_t bytes) = 0;

    struct Region {
        void* ptr = nullptr;
        size_t bytes = 0;
        Cuda::Fenced fenced;  // the mapping that ptr lies in, if it is not an allocation of its own
    };
    virtual Region allocate(size_t bytes, Guard guard) = 0;
    virtual void release(const Region& region) = 0;
};

// Pages are given by the system when they are first touched, so a huge sparse matrix costs little.
class HostMemory : public Memory {
public:
    bool on_device() const override { return false; }
    void copy_in(void* to, const void* from, size_t bytes) override;
    void copy_out(void* to, const void* from, size_t bytes) override;
    void copy(void* to, const void* from, size_t bytes) override { copy_in(to, from, bytes); }
    void fill(void* to, unsigned char value, size_t bytes) override;
    Region allocate(size_t bytes, Guard guard) override;
    void release(const Region& region) override;
};

class DeviceMemory : public Memory {
public:
    explicit DeviceMemory(Cuda& cuda) : cuda_(cuda) {}
    bool on_device() const override { return true; }
    void copy_in(void* to, const void* from, size_t bytes) override { cuda_.copy_in(to, from, bytes); }
    void copy_out(void* to, const void* from, size_t bytes) override { cuda_.copy_out(to, from, bytes); }
    // Both return when the work is done: streams need not wait for the default one.
    void copy(void* to, const void* from, size_t bytes) override;
    void fill(void* to, unsigned char value, size_t bytes) override;
    Region allocate(size_t bytes, Guard guard) override;
    void release(const Region& region) override;

private:
    Cuda& cuda_;
};

// An allocation that releases itself.
class Block {
public:
    Block() = default;
    Block(Memory& memory, size_t bytes, Guard guard = Guard::Pads)
        : memory_(&memory), region_(memory.allocate(bytes, guard))
    {
    }
    Block(Block&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), region_(std::exchange(other.region_, {}))
    {
    }
    Block& operator=(Block&& other) noexcept
    {
        std::swap(memory_, other.memory_);
        std::swap(region_, other.region_);
        return *this;
    }
    ~Block();

    template <typename T = void>
    T* get() const
    {
        return static_cast<T*>(region_.ptr);
    }
    size_t bytes() const { return region_.bytes; }
    void copy_in(const void* from) { memory_->copy_in(region_.ptr, from, region_.bytes); }
    void copy_out(void* to) const { memory_->copy_out(to, region_.ptr, region_.bytes); }

private:
    Memory* memory_ = nullptr;
    Memory::Region region_;
};

}  // namespace hg::test
