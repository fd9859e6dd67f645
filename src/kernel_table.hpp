// A GPU backend's per-handle state: the entry points of one image, loaded for one device.
#pragma once

#include "backend.hpp"
#include "driver.hpp"

#include <span>

namespace hg {

// Entry point `variant` of `row` is kernels[row * variants + variant]; null where a row has fewer.
struct KernelTable {
    const void* image;
    int variants;
    driver::Kernel* kernels;

    driver::Kernel at(const Plan& plan) const { return kernels[plan.row * variants + plan.variant]; }
};

// The name of a row's entry point; false when the row has no such variant.
using SymbolName = bool (*)(const Row& row, int variant, char (&name)[80]);

Status open_kernels(const void* image, const Device& device, std::span<const Row> rows, int variants,
                    SymbolName symbol_name, void** state);
void close_kernels(void* state);

// Launch the planned kernel with one parameter struct.
Status launch(const KernelTable& table, const Plan& plan, const void* params, hgemm_stream_t stream);

}  // namespace hg
