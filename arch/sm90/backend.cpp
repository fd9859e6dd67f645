// The sm90 backend: TMA + wgmma, for compute capability 9.0 alone.
#include "arch/sm90/backend.hpp"

#include "arch/common/pack.hpp"
#include "arch/sm90/rows.hpp"
#include "src/handle.hpp"
#include "src/kernel_table.hpp"

extern "C" {
extern const unsigned char hgemm_image_sm90_sm90[];
}

namespace hg {
namespace sm90 {
namespace {

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return device.cc == 90 && device.smem_per_block >= smem_limit && hgemm_image_sm90_sm90[0] != 0;
}

// Entry points are named after the majors of x and y.
bool symbol(const Row& row, int variant, char (&name)[80]) { return major_symbol(row, variant, name); }

Status open(const Device& device, void** state)
{
    return open_kernels(hgemm_image_sm90_sm90, device, rows, major_variants, symbol, state);
}

size_t default_workspace(const Device&) { return 0; }

Status run(Handle& handle, void* state, const Problem& p, const Plan& plan)
{
    Params params;
    const Status status = pack(p, plan, handle.sm_count(), params);
    return status == ok ? launch(*static_cast<const KernelTable*>(state), plan, &params, handle.stream)
                        : status;
}

}  // namespace
}  // namespace sm90

const Backend sm90_backend = {
    "sm90",     sm90::rows,    sm90::row_count,         sm90::serves,
    sm90::open, close_kernels, sm90::default_workspace, sm90::choose,
    sm90::run,  true,
};

}  // namespace hg
