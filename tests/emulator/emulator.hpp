// The emulator as its users see it: the driver library and ptxrun.
#pragma once

#include "core/state.hpp"

namespace emu {

// A loaded module: parsed text, decoded kernels, memory of its globals. A kernel is read and decoded when
// it is first asked for, and refused there.
class LoadedModule {
public:
    LoadedModule(Machine& machine, std::string text, std::string file);  // throws ptx::Error
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;

    const Program* find(const std::string& kernel) const;
    const ptx::Kernel* kernel(const std::string& name) const;  // its body is read
    const ptx::Module& module() const { return module_; }
    std::string
    newer_version() const;  // a line for somebody who is to know; empty where it is no newer one
    // Address and size of a .global variable; null if there is none.
    void* global(const std::string& name, size_t* bytes) const;

private:
    Machine& machine_;
    mutable ptx::Module module_;
    std::vector<uint64_t> global_address_;
    mutable std::map<std::string, std::unique_ptr<Program>> programs_;
};

// Everything in a text that would be refused: file, line and what is wrong with each declaration or
// instruction. Any bytes may be given.
std::vector<std::string> list_refused(std::string text, std::string file);

// Tensor maps: the emulator's own 128-byte encoding, with the real driver's argument checks. Nothing is
// kept in the second eight bytes: CUTLASS clears a bit there, against a defect of real drivers.
struct TensorMap {
    uint64_t magic;
    uint64_t left_alone;
    uint64_t base;
    uint64_t size[5], stride[4];  // stride in bytes of dimensions 1 ...
    uint32_t rank, type;
    uint16_t box[5];
    uint8_t element_stride[5];
    uint8_t interleave, swizzle, oob_nan, element_bytes;
    uint8_t replaced;  // by tensormap.replace, and not checked since
    uint8_t unused[4];
};
static_assert(sizeof(TensorMap) == 128);

}  // namespace emu
