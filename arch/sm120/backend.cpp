// The sm120 backend: TMA + mma.sync, for compute capability 12.x, and for 9.0 where it is named.
#include "arch/sm120/backend.hpp"

#include "arch/common/pack.hpp"
#include "arch/sm120/rows.hpp"
#include "src/handle.hpp"
#include "src/kernel_table.hpp"

extern "C" {
extern const unsigned char hgemm_image_sm120_sm120[], hgemm_image_sm120_sm90[];
}

namespace hg {
namespace sm120 {
namespace {

const unsigned char* image_for(const Device& device)
{
    return device.cc == 90 ? hgemm_image_sm120_sm90 : hgemm_image_sm120_sm120;
}

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return (device.cc / 10 == 12 || device.cc == 90) && device.smem_per_block >= smem_limit &&
           image_for(device)[0] != 0;
}

bool stands_aside(const Device& device) { return device.cc == 90; }

Status open(const Device& device, void** state)
{
    const void* const image = image_for(device);
    return open_kernels({image, image}, device, rows, major_variants, major_symbol, state);
}

size_t default_workspace(const Device&) { return 0; }

Status pack(const Handle&, const Problem& p, const Plan& plan, Packed& packed)
{
    return pack_product(p, plan, packed.as<Params>());
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    return hg::launch(*static_cast<const KernelTable*>(state), plan, packed.bytes, handle.stream);
}

}  // namespace
}  // namespace sm120

const Backend sm120_backend = {
    "sm120",
    sm120::rows,
    sm120::row_count,
    sm120::serves,
    sm120::open,
    close_kernels,
    sm120::default_workspace,
    nullptr,
    sm120::choose,
    sm120::pack,
    sm120::launch,
    true,
    sm120::stands_aside,
};

}  // namespace hg
