#include "src/run/kernel_table.hpp"

#include "src/base/side_by_side.hpp"
#include "src/base/status.hpp"

namespace hg {
namespace {

Status get_kernels(const Image& image, const driver::LoadedImage& loaded, const Device& device,
                   std::span<const KernelInfo> kernels, SymbolName symbol_name, KernelTable& table)
{
    for (int i = image.kernels.begin; i < image.kernels.end; ++i) {
        if (kernels[i].smem_bytes > device.smem_per_block)
            continue;
        for (int variant = image.variants.begin; variant < image.variants.end; ++variant) {
            char name[80];
            if (!symbol_name(kernels[i], variant, name))
                continue;
            driver::Kernel* kernel = &table.kernels[i * table.variants + variant];
            if (Status status = driver::get_kernel(loaded, name, kernel); status != ok)
                return status;
        }
    }
    return ok;
}

}  // namespace

Status open_kernels(std::span<const Image> images, const Device& device,
                    std::span<const KernelInfo> kernels, int variants, SymbolName symbol_name, void** state)
{
    auto* table = new KernelTable{
        device.ordinal, variants, std::vector<driver::Kernel>(kernels.size() * variants),
        std::vector<char>(kernels.size() * variants), std::vector<driver::LoadedImage*>(images.size())};
    *state = table;
    void* context = nullptr;
    int ordinal = 0;
    if (Status status = driver::current_context(&context, &ordinal); status != ok)
        return status;
    return run_side_by_side(static_cast<int>(images.size()), [&](int i) {
        const driver::Scope scope(context);
        Status status = scope.status();
        if (status == ok)
            status = driver::load_image(images[i].bytes, &table->images[i]);
        if (status == ok)
            status = get_kernels(images[i], *table->images[i], device, kernels, symbol_name, *table);
        return status;
    });
}

Status open_kernels(const unsigned char* image, const Device& device, std::span<const KernelInfo> kernels,
                    int variants, SymbolName symbol_name, void** state)
{
    const Image whole{image, {0, static_cast<int>(kernels.size())}, {0, variants}};
    return open_kernels({&whole, 1}, device, kernels, variants, symbol_name, state);
}

void close_kernels(void* state)
{
    const auto* table = static_cast<KernelTable*>(state);
    for (driver::LoadedImage* image : table->images)
        if (image)
            driver::unload_image(image);
    delete table;
}

Status launch_kernel(KernelTable& table, const Plan& plan, const void* params, hgemm_stream_t stream)
{
    const KernelInfo& kernel = plan.backend->kernels[plan.kernel];
    const int entry = table.entry_of(plan);
    if (plan.grid > INT32_MAX)
        return fail(HGEMM_STATUS_INTERNAL, "%s with %lld thread blocks", kernel.name,
                    static_cast<long long>(plan.grid));
    if (!table.is_ready[entry]) {
        const Status status =
            driver::allow_shared_memory(table.kernels[entry], table.ordinal, kernel.smem_bytes);
        if (status != ok)
            return status;
        table.is_ready[entry] = true;
    }
    driver::Launch request{};
    request.kernel = table.kernels[entry];
    request.grid = static_cast<unsigned>(plan.grid);
    request.cluster = static_cast<unsigned>(plan.cluster);
    request.threads = static_cast<unsigned>(kernel.threads);
    request.smem_bytes = static_cast<unsigned>(kernel.smem_bytes);
    request.pdl = plan.uses_pdl();
    request.params = const_cast<void*>(params);
    return driver::enqueue(request, stream);
}

}  // namespace hg
