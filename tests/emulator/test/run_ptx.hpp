// Runs small PTX kernels on an emulated device.
#pragma once

#include "emulator.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

class Device {
public:
    explicit Device(int cc, uint64_t seed = 1);

    // Device memory with these contents; its address.
    template <typename T>
    uint64_t put(const std::vector<T>& values)
    {
        return put_bytes(values.data(), values.size() * sizeof(T));
    }
    template <typename T>
    std::vector<T> get(uint64_t address, size_t count) const
    {
        const T* values = reinterpret_cast<const T*>(address);
        return {values, values + count};
    }

    // Runs the module's kernel `k` with parameters of 8 bytes each. Nothing, or the kinds of all reports in
    // order, each once; for a fault its kind, for a refused module "refused".
    std::string run(const std::string& module, const Launch& shape,
                    const std::vector<uint64_t>& parameters);
    const std::string& message() const { return message_; }  // of the last fault or refusal, or all reports
    Machine& machine() { return machine_; }

private:
    uint64_t put_bytes(const void* bytes, size_t count);

    Machine machine_;
    std::string message_;
};

// A module with kernel `k`, parameters p0 ... of 64 bits, and registers %r<64>, %rd<64>, %f<64>, %h<64>,
// %p<16>. %rd0 ... hold the parameters, %r0 the thread and %r1 the CTA number; `dynamic` is
// the dynamic shared memory.
std::string ptx_kernel(const std::string& target, int parameters, const std::string& body);

Launch shape_of(uint32_t ctas, uint32_t threads, uint32_t cluster = 1, uint32_t shared = 0);

}  // namespace emu
