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
extern const unsigned char hgemm_image_sm90_f16[], hgemm_image_sm90_bf16[];
}

namespace hg {
namespace sm90 {
namespace {

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return device.cc == 90 && device.smem_per_block >= smem_limit && hgemm_image_sm90_f16[0] != 0;
}

// Entry points are named after the majors of x and y; sm90_repack is one for both types.
bool symbol(const Row& row, int variant, char (&name)[80])
{
    if (&row != &rows[repack_row])
        return major_symbol(row, variant, name);
    std::snprintf(name, sizeof name, "%s", row.name);
    return variant == 0;
}

Status open(const Device& device, void** state)
{
    return open_kernels({hgemm_image_sm90_f16, hgemm_image_sm90_bf16}, device, rows, major_variants, symbol,
                        state);
}

// Room for the copies of most layers of language models, and of two operands of 6,912 x 6,912.
size_t default_workspace(const Device&) { return size_t{192} << 20; }

// The product, and the copies of operands that TMA cannot address.
struct Launches {
    Params product;
    RepackParams copies;
    int64_t copy_tiles;
};

Status pack(const Handle& handle, const Problem& p, const Plan& plan, Packed& packed)
{
    auto& launches = packed.as<Launches>();
    void* const workspace = handle.workspace().ptr;
    if (plan.repacks_a || plan.repacks_b)
        launches.copy_tiles = pack_repack(p, plan, workspace, launches.copies);
    const Status status =
        pack_product(repacked(p, plan, workspace), plan, handle.sm_count(), launches.product);
    if (plan.streams) {
        const Config& c = configs[plan.row];
        const int64_t copies = static_cast<int64_t>(plan.workspace) - stream_bytes(c, plan.grid / c.ctas());
        launches.product.partials = reinterpret_cast<float*>(static_cast<char*>(workspace) + copies);
        launches.product.arrivals = handle.workspace().counters;
    }
    return status;
}

Status launch_repack(const Handle& handle, const KernelTable& table, const Plan& plan,
                     const Launches& launches)
{
    const int residents = handle.options.sm_limit > 0 ? 1 : repack_residents;
    Plan copies = plan;
    copies.row = repack_row;
    copies.variant = copies.cluster = 0;
    copies.grid = std::min(launches.copy_tiles, int64_t{handle.sm_count()} * residents);
    return hg::launch(table, copies, &launches.copies, handle.stream);
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    const auto& table = *static_cast<const KernelTable*>(state);
    const auto& launches = packed.as<Launches>();
    Status status = plan.repacks_a || plan.repacks_b ? launch_repack(handle, table, plan, launches) : ok;
    return status == ok ? hg::launch(table, plan, &launches.product, handle.stream) : status;
}

}  // namespace
}  // namespace sm90

const Backend sm90_backend = {
    "sm90",
    sm90::rows,
    sm90::row_count,
    sm90::serves,
    sm90::open,
    close_kernels,
    sm90::default_workspace,
    sm90::choose,
    sm90::pack,
    sm90::launch,
    true,
};

}  // namespace hg
