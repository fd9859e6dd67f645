// The sm100 backend: TMA + tcgen05, for compute capabilities 10.0, 10.3 and 11.0.
#include "arch/sm100/backend.hpp"

#include "arch/sm100/rows.hpp"
#include "src/handle.hpp"
#include "src/kernel_table.hpp"

#include <cstdio>

extern "C" {
extern const unsigned char hgemm_image_sm100_sm100[], hgemm_image_sm100_sm110[];
}

namespace hg {
namespace sm100 {
namespace {

const unsigned char* image_for(const Device& device)
{
    return device.cc == 110 ? hgemm_image_sm100_sm110 : hgemm_image_sm100_sm100;
}

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return (device.cc == 100 || device.cc == 103 || device.cc == 110) &&
           device.smem_per_block >= smem_limit && image_for(device)[0] != 0;
}

// One entry point a row: it serves both types and all majors.
bool symbol(const Row& row, int, char (&name)[80])
{
    std::snprintf(name, sizeof name, "%s", row.name);
    return true;
}

Status open(const Device& device, void** state)
{
    const void* const image = image_for(device);
    return open_kernels({image, image}, device, rows, 1, symbol, state);
}

size_t default_workspace(const Device&) { return 0; }

Status pack(const Handle& handle, const Problem& p, const Plan& plan, Packed& packed)
{
    return pack_product(p, plan, handle.sm_count(), packed.as<Params>());
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    return hg::launch(*static_cast<const KernelTable*>(state), plan, packed.bytes, handle.stream);
}

}  // namespace
}  // namespace sm100

const Backend sm100_backend = {
    "sm100",
    sm100::rows,
    sm100::row_count,
    sm100::serves,
    sm100::open,
    close_kernels,
    sm100::default_workspace,
    nullptr,
    sm100::choose,
    sm100::pack,
    sm100::launch,
    true,
};

}  // namespace hg
