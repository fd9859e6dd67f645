// A GPU backend's per-handle state: the entry points of its images, loaded for one device.
#pragma once

#include "src/driver/driver.hpp"
#include "src/plan/backend.hpp"

#include <span>
#include <vector>

namespace hg {

struct Range {
    int begin, end;
};

// An image and the entry points that it holds: those of some kernels and variants.
struct Image {
    const unsigned char* bytes;
    Range kernels, variants;
};

// Entry point `variant` of kernel i is kernels[i * variants + variant]; null where a kernel has fewer.
// The first launch of an entry point makes it ready: for all of them that would take 0.17 ms each.
struct KernelTable {
    int ordinal;
    int variants;
    std::vector<driver::Kernel> kernels;
    std::vector<char> is_ready;  // by entry point
    std::vector<driver::LoadedImage*> images;

    int entry_of(const Plan& plan) const { return plan.kernel * variants + plan.variant; }
};

// The name of a kernel's entry point; false when it has no such variant.
using SymbolName = bool (*)(const KernelInfo& kernel, int variant, char (&name)[80]);

// Loads the images side by side, in the current context.
Status open_kernels(std::span<const Image> images, const Device& device,
                    std::span<const KernelInfo> kernels, int variants, SymbolName symbol_name,
                    void** state);
// The same for a backend with one image.
Status open_kernels(const unsigned char* image, const Device& device, std::span<const KernelInfo> kernels,
                    int variants, SymbolName symbol_name, void** state);
void close_kernels(void* state);

// Launches the planned kernel with one parameter struct.
Status launch_kernel(KernelTable& table, const Plan& plan, const void* params, hgemm_stream_t stream);

}  // namespace hg
