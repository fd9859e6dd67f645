// A GPU backend's per-handle state: the entry points of its images, loaded for one device.
#pragma once

#include "backend.hpp"
#include "driver.hpp"

#include <span>

namespace hg {

// The images that hold a backend's entry points. f16 has the first half of a kernel's variants, bf16 the
// rest; both may be the same image.
struct Images {
    const void* f16;
    const void* bf16;
};

// Entry point `variant` of kernel i is kernels[i * variants + variant]; null where a kernel has fewer.
struct KernelTable {
    Images images;
    int variants;
    driver::Kernel* kernels;

    driver::Kernel at(const Plan& plan) const { return kernels[plan.kernel * variants + plan.variant]; }
};

// The name of a kernel's entry point; false when it has no such variant.
using SymbolName = bool (*)(const KernelInfo& kernel, int variant, char (&name)[80]);

Status open_kernels(const Images& images, const Device& device, std::span<const KernelInfo> kernels,
                    int variants, SymbolName symbol_name, void** state);
void close_kernels(void* state);

// Launches the planned kernel with one parameter struct.
Status launch(const KernelTable& table, const Plan& plan, const void* params, hgemm_stream_t stream);

}  // namespace hg
