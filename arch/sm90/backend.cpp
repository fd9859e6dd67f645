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

bool direct_symbol(int row, int variant, char (&name)[80])
{
    const bool k_major = (variant & 2) == 0;
    std::snprintf(name, sizeof name, "%s_%s_%c", rows[row].name, variant & 4 ? "bf16" : "f16",
                  k_major ? 'k' : 'm');
    return variant % 2 == 0 &&
           has_direct_major(direct_configs[row - row_count], k_major ? Major::K : Major::MN);
}

// Entry points are named after the majors of x and y, the direct ones after that of x; x of groups is
// contiguous along k; sm90_repack is one for both types.
bool symbol(const Row& row, int variant, char (&name)[80])
{
    const auto index = static_cast<int>(&row - rows);
    if (is_direct(index))
        return direct_symbol(index, variant, name);
    if (is_grouped(index) && (variant & 2) != 0)
        return false;
    if (index != repack_row)
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

// CTAs that copy at a time.
int64_t most_copying(const Handle& handle)
{
    return int64_t{handle.sm_count()} * (handle.options.sm_limit > 0 ? 1 : repack_residents);
}

// The product may start beside the copies, worth half a microsecond, unless its CTAs would crowd where
// nothing is copied (two a multiprocessor: 2 x 8192 x 8192 takes 39 us instead of 33), or is long and would
// lie where multiprocessors have copied first (300 x 5001 x 5003 68 us instead of 58; short ones lose up to
// 8 % if late).
bool starts_beside_copies(const Handle& handle, const Plan& plan, int64_t tiles)
{
    constexpr double long_product = 20;  // us
    if (plan.grid > handle.sm_count())
        return true;
    const bool crowds = config_of(plan.row).residents > 1 && plan.grid + tiles > handle.sm_count();
    const bool scatters = tiles >= most_copying(handle) && plan.predicted_us > long_product;
    return !crowds && !scatters;
}

Status pack(const Handle& handle, const Problem& p, const Plan& plan, Packed& packed)
{
    if (is_direct(plan.row)) {
        pack_direct(p, plan, packed.as<DirectParams>());
        return ok;
    }
    auto& launches = packed.as<Launches>();
    void* const workspace = handle.workspace().ptr;
    if (plan.repacks_a || plan.repacks_b) {
        launches.copy_tiles = pack_repack(p, plan, workspace, launches.copies);
        launches.copies.early = starts_beside_copies(handle, plan, launches.copy_tiles);
    }
    const Problem left = repacked(p, plan, workspace);
    const Config& c = config_of(plan.row);
    Params& product = launches.product;
    const Status status = is_grouped(plan.row) ? pack_groups(left, plan, product)
                                               : pack_product(left, plan, handle.sm_count(), product);
    product.arrivals = handle.workspace().counters;
    if (plan.hands_out)
        product.handed = product.arrivals + streamed_words(c, product.stream_tiles);
    if (plan.streams) {
        const auto sums = static_cast<size_t>(stream_bytes(c, plan.grid / c.ctas()));
        product.partials = reinterpret_cast<float*>(static_cast<char*>(workspace) + plan.workspace - sums);
    } else if (c.is_global() && plan.split > 1) {
        product.partials = reinterpret_cast<float*>(product.arrivals + arrival_words(c, plan.tiles));
    }
    return status;
}

Status launch_repack(const Handle& handle, const KernelTable& table, const Plan& plan,
                     const Launches& launches)
{
    Plan copies = plan;
    copies.row = repack_row;
    copies.variant = copies.cluster = 0;
    copies.grid = std::min(launches.copy_tiles, most_copying(handle));
    return hg::launch(table, copies, &launches.copies, handle.stream);
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    const auto& table = *static_cast<const KernelTable*>(state);
    if (is_direct(plan.row))
        return hg::launch(table, plan, &packed.as<DirectParams>(), handle.stream);
    const auto& launches = packed.as<Launches>();
    Status status = plan.repacks_a || plan.repacks_b ? launch_repack(handle, table, plan, launches) : ok;
    return status == ok ? hg::launch(table, plan, &launches.product, handle.stream) : status;
}

}  // namespace
}  // namespace sm90

const Backend sm90_backend = {
    "sm90",
    sm90::rows,
    sm90::repack_row,
    sm90::serves,
    sm90::open,
    close_kernels,
    sm90::default_workspace,
    sm90::counter_words,
    sm90::choose,
    sm90::pack,
    sm90::launch,
    true,
    nullptr,
    true,
};

}  // namespace hg
