// The sm120 backend: TMA + mma.sync, for compute capability 12.x, and for 9.0 where it is named.
#include "arch/sm120/backend.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm120/choose.hpp"
#include "arch/sm120/kernels.hpp"
#include "arch/sm120/model.hpp"
#include "arch/sm120/pack.hpp"
#include "src/run/handle.hpp"
#include "src/run/kernel_table.hpp"

extern "C" {
extern const unsigned char image_sm120_sm120[], image_sm120_sm90[];
}

namespace hg {
namespace sm120 {
namespace {

const unsigned char* image_for(const Device& device)
{
    return device.cc == 90 ? image_sm120_sm90 : image_sm120_sm120;
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
    return open_kernels(image_for(device), device, kernels, major_variants, major_symbol, state);
}

size_t default_workspace(const Device&) { return 0; }

Status pack(const Handle&, const Problem& p, const Plan& plan, Packed& packed)
{
    return pack_gemm(p, plan, packed.as<Params>());
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    return launch_kernel(*static_cast<KernelTable*>(state), plan, packed.bytes, handle.stream);
}

}  // namespace
}  // namespace sm120

const Backend sm120_backend = {
    .name = "sm120",
    .kernels = sm120::kernels,
    .kernel_count = sm120::kernel_count,
    .serves = sm120::serves,
    .open = sm120::open,
    .close = close_kernels,
    .default_workspace = sm120::default_workspace,
    .counter_words = nullptr,
    .choose = sm120::choose,
    .pack = sm120::pack,
    .launch = sm120::launch,
    .batch_invariant = true,
    .stands_aside = sm120::stands_aside,
    .is_compared = true,
    .takes_groups = false,
    .predict_plan = sm120::predict_plan,
};

}  // namespace hg
