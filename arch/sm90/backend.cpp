// The sm90 backend: TMA + wgmma, for compute capability 9.0 alone.
#include "arch/sm90/backend.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/repack.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "arch/sm90/params.hpp"
#include "src/run/handle.hpp"
#include "src/run/kernel_table.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

extern "C" {
#define IMAGES(part) extern const unsigned char image_sm90_f16_##part[], image_sm90_bf16_##part[];
SM90_PARTS(IMAGES)
#undef IMAGES
}

namespace hg {
namespace sm90 {
namespace {

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return device.cc == 90 && device.smem_per_block >= smem_limit && image_sm90_f16_other[0] != 0;
}

bool direct_symbol(int kernel, int variant, char (&name)[80])
{
    const bool k_major = (variant & 2) == 0;
    std::snprintf(name, sizeof name, "%s_%s_%c", kernels[kernel].name, variant & 4 ? "bf16" : "f16",
                  k_major ? 'k' : 'm');
    return variant % 2 == 0 &&
           has_direct_major(direct_configs[kernel - first_direct], k_major ? Major::K : Major::MN);
}

// Kernels that split K serve an A of either major, by the variants of a K-major one.
bool either_symbol(int kernel, int variant, char (&name)[80])
{
    std::snprintf(name, sizeof name, "%s_%s_x%c", kernels[kernel].name, variant & 4 ? "bf16" : "f16",
                  variant & 1 ? 'n' : 'k');
    return (variant & 2) == 0;
}

// Entry points are named after type and majors: of A and B, for direct and gemv kernels of A alone. Grouped
// kernels exist for K-major A and, where groups divide K, for MN-major A and B. sm90_repack has one entry
// point.
bool symbol(const KernelInfo& kernel, int variant, char (&name)[80])
{
    const auto index = static_cast<int>(&kernel - kernels);
    if (is_direct(index))
        return direct_symbol(index, variant, name);
    const int majors = variant & 3;
    if (is_of_few_rows(index) && majors != 0)
        return false;
    if (serves_either_major(index))
        return either_symbol(index, variant, name);
    if ((is_grouped(index) && majors == 2) || (is_triangle(index) && majors != 0 && majors != 3) ||
        ((is_gated(index) || is_gated_grouped(index)) && majors != 0 &&
         (majors != 1 || !finds_n_major_gates(config_of(index)))))
        return false;
    if (index != repack_kernel)
        return major_symbol(kernel, variant, name);
    std::snprintf(name, sizeof name, "%s", kernel.name);
    return variant == 0;
}

// All kernels behind those of KERNEL lines are in the last part.
Range kernels_of(ImagePart part)
{
    const auto [first, last] = std::equal_range(std::begin(parts), std::end(parts), part);
    const auto begin = static_cast<int>(first - parts), end = static_cast<int>(last - parts);
    return {begin, part == ImagePart::other ? static_cast<int>(std::size(kernels)) : end};
}

Status open(const Device& device, void** state)
{
    constexpr Range f16{0, major_variants / 2}, bf16{major_variants / 2, major_variants};
#define IMAGES(part)                                                                                       \
    Image{image_sm90_f16_##part, kernels_of(ImagePart::part), f16},                                        \
        Image{image_sm90_bf16_##part, kernels_of(ImagePart::part), bf16},
    const Image images[] = {SM90_PARTS(IMAGES)};
#undef IMAGES
    return open_kernels(images, device, kernels, major_variants, symbol, state);
}

// Room for copies of most layers of language models, or of two operands of 6,912 x 6,912.
size_t default_workspace(const Device&) { return size_t{192} << 20; }

// The parameters of the GEMM, and of the copies of operands that TMA cannot address.
struct Launches {
    Params product;
    RepackParams copies;
    int64_t copy_tiles;
};

int64_t max_copying_ctas(const Handle& handle)
{
    return hg::max_copying_ctas(handle.sm_count(), handle.options.sm_limit > 0);
}

// May the GEMM start beside the copies? That saves half a microsecond. Not if two of its CTAs would share
// an SM while others copy, nor if it is long and would be placed by which SMs finish copying first.
// EXPERIMENTS.md#repack.
bool starts_beside_copies(const Handle& handle, const Plan& plan, int64_t tiles)
{
    constexpr double long_us = 20;
    if (plan.grid > handle.sm_count())
        return true;
    const bool crowds = config_of(plan.kernel).ctas_per_sm > 1 && plan.grid + tiles > handle.sm_count();
    const bool scatters = tiles >= max_copying_ctas(handle) && plan.predicted_us > long_us;
    return !crowds && !scatters;
}

Status pack(const Handle& handle, const Problem& p, const Plan& plan, Packed& packed)
{
    if (is_direct(plan.kernel)) {
        pack_direct(p, plan, packed.as<DirectParams>());
        return ok;
    }
    auto& launches = packed.as<Launches>();
    void* const workspace = handle.workspace().ptr;
    if (plan.repacks()) {
        launches.copy_tiles = pack_repack(p, plan, workspace, launches.copies);
        launches.copies.pdl_early = starts_beside_copies(handle, plan, launches.copy_tiles);
    }
    const Problem left = repacked(p, plan, workspace);
    const Config& c = config_of(plan.kernel);
    Params& product = launches.product;
    const Status status = is_of_groups(plan.kernel)     ? pack_groups(left, plan, product)
                          : is_of_few_rows(plan.kernel) ? pack_few_rows(left, plan, product)
                          : is_triangle(plan.kernel)    ? pack_triangle_product(left, plan, product)
                          : is_gated(plan.kernel)       ? pack_gated_product(left, plan, product)
                                                        : pack_gemm(left, plan, product);
    product.arrivals = handle.workspace().counters;
    if (plan.sm90.dynamic_schedule)
        product.tile_counter = product.arrivals + stream_k_words(c, product.stream_k_tiles);
    if (plan.sm90.stream_k) {
        const auto sums = static_cast<size_t>(stream_k_bytes(c, plan.grid / c.ctas()));
        product.partials = reinterpret_cast<float*>(static_cast<char*>(workspace) + plan.workspace - sums);
    } else if (is_tree(plan.kernel)) {
        product.partials = static_cast<float*>(workspace);
    } else if (c.is_global() && plan.split > 1) {
        product.partials = reinterpret_cast<float*>(product.arrivals + arrival_words(c, plan.tiles));
    }
    return status;
}

Status launch_repack(const Handle& handle, KernelTable& table, const Plan& plan, const Launches& launches)
{
    const Plan copies = plan_of_copies(plan, repack_kernel, launches.copy_tiles, max_copying_ctas(handle));
    return launch_kernel(table, copies, &launches.copies, handle.stream);
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    auto& table = *static_cast<KernelTable*>(state);
    if (is_direct(plan.kernel))
        return launch_kernel(table, plan, &packed.as<DirectParams>(), handle.stream);
    const auto& launches = packed.as<Launches>();
    Status status = plan.repacks() ? launch_repack(handle, table, plan, launches) : ok;
    return status == ok ? launch_kernel(table, plan, &launches.product, handle.stream) : status;
}

}  // namespace
}  // namespace sm90

const Backend sm90_backend = {
    .name = "sm90",
    .kernels = sm90::kernels,
    .kernel_count = sm90::repack_kernel,
    .serves = sm90::serves,
    .open = sm90::open,
    .close = close_kernels,
    .default_workspace = sm90::default_workspace,
    .counter_words = sm90::counter_words,
    .choose = sm90::choose,
    .pack = sm90::pack,
    .launch = sm90::launch,
    .batch_invariant = true,
    .stands_aside = nullptr,
    .takes_groups = true,
    .takes_k_groups = true,
    .takes_triangles = true,
    .takes_leaves = true,
    .takes_gates = true,
    .predict_plan = sm90::predict_plan,
    .cuts_deep_k = true,
};

}  // namespace hg
