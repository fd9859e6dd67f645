// The sm90 backend: TMA + wgmma, for compute capability 9.0 alone.
#include "arch/sm90/backend.hpp"

#include "arch/common/pack.hpp"
#include "arch/sm90/repack.hpp"
#include "arch/sm90/rows.hpp"
#include "src/handle.hpp"
#include "src/kernel_table.hpp"

#include <algorithm>
#include <cstdio>

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

// Entry points are named after the majors of x and y; there is one sm90_repack.
bool symbol(const Row& row, int variant, char (&name)[80])
{
    if (&row != &rows[repack_row])
        return major_symbol(row, variant, name);
    std::snprintf(name, sizeof name, "%s", row.name);
    return variant == 0;
}

Status open(const Device& device, void** state)
{
    return open_kernels(hgemm_image_sm90_sm90, device, rows, major_variants, symbol, state);
}

// Room for the copies of two operands of 4095 x 4095.
size_t default_workspace(const Device&) { return size_t{64} << 20; }

// Copy the operands that TMA cannot address.
Status run_repack(Handle& handle, const KernelTable& table, const Problem& p, const Plan& plan)
{
    RepackParams params;
    const int64_t tiles = pack_repack(p, plan, handle.workspace().ptr, params);
    const int residents = handle.options.sm_limit > 0 ? 1 : repack_residents;
    Plan copies = plan;
    copies.row = repack_row;
    copies.variant = copies.cluster = 0;
    copies.grid = std::min(tiles, int64_t{handle.sm_count()} * residents);
    return launch(table, copies, &params, handle.stream);
}

Status run(Handle& handle, void* state, const Problem& p, const Plan& plan)
{
    const auto& table = *static_cast<const KernelTable*>(state);
    Params params;
    Status status = pack(repacked(p, plan, handle.workspace().ptr), plan, handle.sm_count(), params);
    if (status == ok && plan.workspace > 0)
        status = run_repack(handle, table, p, plan);
    return status == ok ? launch(table, plan, &params, handle.stream) : status;
}

}  // namespace
}  // namespace sm90

const Backend sm90_backend = {
    "sm90",     sm90::rows,    sm90::row_count,         sm90::serves,
    sm90::open, close_kernels, sm90::default_workspace, sm90::choose,
    sm90::run,  true,
};

}  // namespace hg
