// The sm100 backend: TMA + tcgen05, for compute capabilities 10.0, 10.3, 10.7 and 11.0.
#include "arch/sm100/backend.hpp"

#include "arch/sm100/choose.hpp"
#include "arch/sm100/kernels.hpp"
#include "arch/sm100/model.hpp"
#include "arch/sm100/pack.hpp"
#include "src/run/handle.hpp"
#include "src/run/kernel_table.hpp"

#include <cstdio>

extern "C" {
extern const unsigned char image_sm100_sm100[], image_sm100_sm110[];
}

namespace hg {
namespace sm100 {
namespace {

// The image of compute_100f is for all members of its family: 10.0, 10.3 and, as nvcc 13.5 says, 10.7. It
// has run on none of them.
const unsigned char* image_for(const Device& device)
{
    return device.cc == 110 ? image_sm100_sm110 : image_sm100_sm100;
}

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return (device.cc == 100 || device.cc == 103 || device.cc == 107 || device.cc == 110) &&
           device.smem_per_block >= smem_limit && image_for(device)[0] != 0;
}

// One entry point a kernel: it serves both types and all majors.
bool symbol(const KernelInfo& kernel, int, char (&name)[80])
{
    std::snprintf(name, sizeof name, "%s", kernel.name);
    return true;
}

Status open(const Device& device, void** state)
{
    return open_kernels(image_for(device), device, kernels, 1, symbol, state);
}

size_t default_workspace(const Device&) { return 0; }

Status pack(const Handle& handle, const Problem& p, const Plan& plan, Packed& packed)
{
    return pack_gemm(p, plan, handle.sm_count(), packed.as<Params>());
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    return launch_kernel(*static_cast<KernelTable*>(state), plan, packed.bytes, handle.stream);
}

}  // namespace
}  // namespace sm100

const Backend sm100_backend = {
    .name = "sm100",
    .kernels = sm100::kernels,
    .kernel_count = sm100::kernel_count,
    .serves = sm100::serves,
    .open = sm100::open,
    .close = close_kernels,
    .default_workspace = sm100::default_workspace,
    .counter_words = nullptr,
    .choose = sm100::choose,
    .pack = sm100::pack,
    .launch = sm100::launch,
    .batch_invariant = true,
    .stands_aside = nullptr,
    .takes_groups = false,
    .predict_plan = sm100::predict_plan,
};

}  // namespace hg
