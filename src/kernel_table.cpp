#include "kernel_table.hpp"

#include <new>

namespace hg {
namespace {

// An image that serves both types is loaded once: driver.cpp counts its users.
void unload(const Images& images)
{
    driver::unload_image(images.f16);
    driver::unload_image(images.bf16);
}

Status load(const Images& images)
{
    Status status = driver::load_image(images.f16);
    if (status == ok && (status = driver::load_image(images.bf16)) != ok)
        driver::unload_image(images.f16);
    return status;
}

Status get_kernels(const KernelTable& table, const Device& device, std::span<const KernelInfo> kernels,
                   SymbolName symbol_name)
{
    for (size_t i = 0; i < kernels.size(); ++i) {
        if (kernels[i].smem_bytes > device.smem_per_block)
            continue;
        for (int variant = 0; variant < table.variants; ++variant) {
            char name[80];
            if (!symbol_name(kernels[i], variant, name))
                continue;
            driver::Kernel* kernel = &table.kernels[i * table.variants + variant];
            const driver::KernelRequest request{name, kernels[i].smem_bytes};
            const void* image = 2 * variant < table.variants ? table.images.f16 : table.images.bf16;
            if (Status status = driver::get_kernel(image, device.ordinal, request, kernel); status != ok)
                return status;
        }
    }
    return ok;
}

}  // namespace

Status open_kernels(const Images& images, const Device& device, std::span<const KernelInfo> kernels,
                    int variants, SymbolName symbol_name, void** state)
{
    *state = nullptr;
    auto* entries = new (std::nothrow) driver::Kernel[kernels.size() * variants]{};
    auto* table = new (std::nothrow) KernelTable{images, variants, entries};
    if (!entries || !table) {
        delete[] entries;
        delete table;
        return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for a table of kernels");
    }
    if (Status status = load(images); status != ok) {
        delete[] entries;
        delete table;
        return status;
    }
    *state = table;
    return get_kernels(*table, device, kernels, symbol_name);
}

void close_kernels(void* state)
{
    auto* table = static_cast<KernelTable*>(state);
    unload(table->images);
    delete[] table->kernels;
    delete table;
}

Status launch(const KernelTable& table, const Plan& plan, const void* params, hgemm_stream_t stream)
{
    const KernelInfo& kernel = plan.backend->kernels[plan.kernel];
    if (plan.grid > INT32_MAX)
        return fail(HGEMM_STATUS_INTERNAL, "%s with %lld thread blocks", kernel.name,
                    static_cast<long long>(plan.grid));
    driver::Launch request{};
    request.kernel = table.at(plan);
    request.grid = static_cast<unsigned>(plan.grid);
    request.cluster = static_cast<unsigned>(plan.cluster);
    request.threads = static_cast<unsigned>(kernel.threads);
    request.smem_bytes = static_cast<unsigned>(kernel.smem_bytes);
    request.pdl = plan.uses_pdl();
    request.params = const_cast<void*>(params);
    return driver::launch(request, stream);
}

}  // namespace hg
