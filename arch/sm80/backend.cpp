// The sm80 backend: mma.sync kernels, for Ampere and Ada, and the general path of every later GPU.
#include "arch/sm80/backend.hpp"

#include "arch/common/exchange/config.hpp"
#include "arch/common/experts/config.hpp"
#include "arch/common/gate/config.hpp"
#include "arch/common/host/exchange.hpp"
#include "arch/common/host/experts.hpp"
#include "arch/common/host/gate.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/repack.hpp"
#include "arch/common/host/tree.hpp"
#include "arch/common/host/triangle.hpp"
#include "arch/common/tree/config.hpp"
#include "arch/common/triangle/config.hpp"
#include "arch/sm80/choose.hpp"
#include "arch/sm80/kernels.hpp"
#include "arch/sm80/model.hpp"
#include "arch/sm80/pack.hpp"
#include "src/plan/exchange.hpp"
#include "src/plan/experts.hpp"
#include "src/plan/gate.hpp"
#include "src/plan/tree.hpp"
#include "src/plan/triangle.hpp"
#include "src/run/handle.hpp"
#include "src/run/kernel_table.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

extern "C" {
extern const unsigned char image_sm80_sm80[], image_sm80_sm87[], image_sm80_sm90[], image_sm80_sm100[],
    image_sm80_sm120[], image_sm80_ptx[];
}

namespace hg {
namespace sm80 {
namespace {

// Machine code for 8.0 also runs on 8.6 and 8.9 (desktop GPUs); 8.7 (Orin) has its own image, see
// arch/select.cmake.
const unsigned char* machine_code_for(const Device& device)
{
    if (device.cc == 80 || device.cc == 86 || device.cc == 89)
        return image_sm80_sm80;
    if (device.cc == 87)
        return image_sm80_sm87;
    if (device.cc == 90)
        return image_sm80_sm90;
    if (device.cc / 10 == 10)
        return image_sm80_sm100;
    if (device.cc / 10 == 12)
        return image_sm80_sm120;
    return image_sm80_ptx;
}

// Devices whose machine code was left out of the build, or of which there is none, get PTX.
const unsigned char* image_for(const Device& device)
{
    const unsigned char* const image = machine_code_for(device);
    return image[0] != 0 ? image : image_sm80_ptx;
}

// An image that was left out of the build is empty.
bool serves(const Device& device) { return device.cc >= 80 && image_for(device)[0] != 0; }

// Entry point of a GEMM. Kernels of the family Any have one for each type.
bool gemm_symbol(const KernelInfo& kernel, int variant, char (&name)[80])
{
    const Config& c = configs[&kernel - kernels];
    if (!c.takes_any())
        return c.takes_majors(variant & 2 ? Major::MN : Major::K, variant & 1 ? Major::MN : Major::K) &&
               major_symbol(kernel, variant, name);
    std::snprintf(name, sizeof name, "%s_%s", kernel.name, variant ? "bf16" : "f16");
    return variant < 2;
}

bool append(const char* text, char (&name)[80])
{
    const size_t length = std::strlen(name);
    std::snprintf(name + length, sizeof name - length, "%s", text);
    return true;
}

bool k_group_symbol(const KernelInfo& kernel, int variant, char (&name)[80])
{
    const Config& c = configs[&kernel - kernels];
    const bool serves = c.takes_any() || c.takes_k_groups(variant & 2 ? Major::MN : Major::K,
                                                          variant & 1 ? Major::MN : Major::K);
    return serves && gemm_symbol(kernel, variant, name) && append("_k_groups", name);
}

// `variant`: of those with gates, and then of those for groups.
bool gate_symbol(const KernelInfo& kernel, int variant, char (&name)[80])
{
    const bool grouped = variant >= group_variants, a_is_k_major = (variant & 2) == 0;
    return configs[&kernel - kernels].takes_gates() && a_is_k_major &&
           gemm_symbol(kernel, variant % group_variants, name) &&
           append(grouped ? "_gated_groups" : "_gates", name);
}

bool symbol_name(const KernelInfo& kernel, int variant, char (&name)[80])
{
    if (&kernel >= &kernels[repack_kernel]) {
        std::snprintf(name, sizeof name, "%s", kernel.name);
        return variant == 0;
    }
    if (variant < group_variants)
        return gemm_symbol(kernel, variant, name);
    const Config& c = configs[&kernel - kernels];
    if (variant >= gate_variants)
        return gate_symbol(kernel, variant - gate_variants, name);
    if (variant >= k_group_variants)
        return k_group_symbol(kernel, variant - k_group_variants, name);
    const int gemm_variant = variant - group_variants;
    const bool a_is_k_major = c.takes_any() || (gemm_variant & 2) == 0;
    if (!c.takes_groups() || !gemm_symbol(kernel, gemm_variant, name) || !a_is_k_major)
        return false;
    return append("_groups", name);
}

Status open(const Device& device, void** state)
{
    return open_kernels(image_for(device), device, kernels, all_variants, symbol_name, state);
}

// Room for copies of two operands of 5,700 x 5,700, and for the partial sums of more CTAs than a device
// runs at a time.
size_t default_workspace(const Device&) { return size_t{128} << 20; }

// A word for each warp of each tile whose K is split; larger problems are not split.
size_t counter_words(const Device& device, size_t) { return static_cast<size_t>(device.sm_count) * 32; }

bool choose_any(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    return p.is_gated() ? choose_gated(p, device, options, plan) : choose(p, device, options, plan);
}

// The parameters of the GEMM, and of the copies of operands that it cannot read.
struct Launches {
    Params product;
    RepackParams copies;
    int64_t copy_tiles;
};

Status pack(const Handle& handle, const Problem& p, const Plan& plan, Packed& packed)
{
    auto& launches = packed.as<Launches>();
    void* const workspace = handle.workspace().ptr;
    if (plan.repacks())
        launches.copy_tiles = pack_repack(p, plan, workspace, launches.copies);
    pack_gemm(repacked(p, plan, workspace), plan, launches.product);
    launches.product.slices.arrivals = handle.workspace().counters;
    if (plan.split > 1) {
        const int64_t sums = partials_bytes(configs[plan.kernel], plan.tiles, plan.split);
        auto* const end = static_cast<char*>(workspace) + plan.workspace;
        launches.product.slices.partials = reinterpret_cast<float*>(end - sums);
    }
    return ok;
}

// Under a limit of SMs, one launch a wave: a loop over tiles would cost registers in all kernels.
Status launch_product(const Handle& handle, KernelTable& table, const Plan& plan, const Params& product)
{
    const int64_t ctas = plan.tiles * plan.split;
    if (plan.grid == ctas)
        return launch_kernel(table, plan, &product, handle.stream);
    Plan wave = plan;
    Params params = product;
    Status status = ok;
    for (int64_t first = 0; status == ok && first < ctas; first += plan.grid) {
        params.first = static_cast<int32_t>(first);
        wave.grid = std::min(plan.grid, ctas - first);
        status = launch_kernel(table, wave, &params, handle.stream);
    }
    return status;
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    auto& table = *static_cast<KernelTable*>(state);
    const auto& launches = packed.as<Launches>();
    Status status = ok;
    if (plan.repacks()) {
        const int64_t most = max_copying_ctas(handle.sm_count(), handle.options.sm_limit > 0);
        const Plan copies = plan_of_copies(plan, repack_kernel, launches.copy_tiles, most);
        status = launch_kernel(table, copies, &launches.copies, handle.stream);
    }
    return status == ok ? launch_product(handle, table, plan, launches.product) : status;
}

// Of a pass over memory: one launch of a kernel that is no product.
Status launch_pass(const Handle& handle, void* state, int kernel, int64_t grid, const void* params)
{
    Plan plan{};
    plan.backend = &sm80_backend;
    plan.kernel = kernel;
    plan.grid = grid;
    return launch_kernel(*static_cast<KernelTable*>(state), plan, params, handle.stream);
}

// At most so many CTAs, which run at the same time. Under a limit of SMs each may have an SM of its own.
int64_t most_ctas(const Handle& handle, int per_sm)
{
    return int64_t{handle.sm_count()} * (handle.options.sm_limit > 0 ? 1 : per_sm);
}

// Calls launch(first, count) for `all` in turns of so many, up to the first that fails.
template <typename Launch>
Status launch_in_turns(int64_t all, int64_t at_once, Launch launch)
{
    Status status = ok;
    for (int64_t first = 0; status == ok && first < all; first += at_once)
        status = launch(first, std::min(at_once, all - first));
    return status;
}

Status sum_leaves(Handle& handle, void* state, const Problem& output, const LeafSums& sums)
{
    const int64_t ctas = most_ctas(handle, tree_ctas_per_sm);
    const TreeSumParams params = pack_tree_sum(output, sums, ctas);
    return launch_pass(handle, state, tree_kernel, std::min<int64_t>(params.chunks, ctas), &params);
}

Status move_triangle(Handle& handle, void* state, const TriangleMove& move)
{
    const int64_t ctas = most_ctas(handle, triangle_ctas_per_sm);
    return launch_in_turns(move.batch, problems_of_triangle_launch(move),
                           [&](int64_t first, int64_t count) {
                               const TriangleParams params = pack_triangle(move, first, count);
                               return launch_pass(handle, state, triangle_kernel,
                                                  std::min<int64_t>(params.chunks, ctas), &params);
                           });
}

Status apply_gates(Handle& handle, void* state, const GatePass& pass)
{
    const GateParams params = pack_gates(pass);
    const int64_t grid =
        std::min(ceil_div(params.units, gate_threads), most_ctas(handle, gate_ctas_per_sm));
    return launch_pass(handle, state, gate_kernel, grid, &params);
}

Status gate_gradient(Handle& handle, void* state, const GateGradient& what)
{
    const int64_t ctas = most_ctas(handle, gate_ctas_per_sm);
    return launch_in_turns(what.rows, rows_at_once(what), [&](int64_t first, int64_t count) {
        const GateGradientParams params = pack_gate_gradient(what, first, count);
        const int64_t grid = std::min(ceil_div(params.units, gate_threads), ctas);
        return launch_pass(handle, state, gate_gradient_kernel, grid, &params);
    });
}

// While CTAs wait they take a quarter of the SMs, so that what they wait for can run on this device too.
int64_t most_waiting_ctas(const Handle& handle) { return std::max(1, handle.sm_count() / 4); }

Status launch_exchange(Handle& handle, void* state, const Exchange& what, int64_t row, bool waits)
{
    const ExchangeParams params = pack_exchange(what, row, waits);
    const int64_t most = params.wait_count > 0 ? most_waiting_ctas(handle) : handle.sm_count();
    const int64_t grid = std::clamp<int64_t>(ceil_div(params.units, exchange_threads), 1, most);
    return launch_pass(handle, state, exchange_kernel, grid, &params);
}

// The flags of an exchange alone.
Exchange flags_of(const Exchange& what)
{
    Exchange flags = what;
    flags.rows = 0;
    flags.raise_after = {};
    return flags;
}

// A long sum takes all SMs, behind a kernel that waits.
Status exchange(Handle& handle, void* state, const Exchange& what)
{
    Exchange after{};
    after.raise = what.raise_after;
    after.error = what.error;
    if (what.rows == 0 && what.raise.empty() && what.wait.empty())
        return launch_exchange(handle, state, after, 0, true);
    constexpr int64_t units_of_thread = 4, unit = 4;
    const int64_t few = most_waiting_ctas(handle) * exchange_threads * units_of_thread * unit;
    const bool apart = !what.wait.empty() && what.rows * what.columns > few;
    Status status = apart ? launch_exchange(handle, state, flags_of(what), 0, true) : ok;
    int64_t row = 0;
    do {
        if (status == ok)
            status = launch_exchange(handle, state, what, row, !apart);
        row += rows_at_once(what);
    } while (row < what.rows);
    if (status != ok || what.raise_after.empty() || !what.wait.empty())
        return status;
    return launch_exchange(handle, state, after, 0, true);
}

// One launch, or one that counts and one that writes.
Status route(Handle& handle, void* state, const Route& what)
{
    const int64_t grid = count_route_ctas(what, handle.sm_count(), handle.workspace().bytes);
    RouteParams params = pack_route(what, grid, static_cast<int32_t*>(handle.workspace().ptr));
    Status status = ok;
    if (grid > 1) {
        params.counts_alone = true;
        status = launch_pass(handle, state, route_kernel, grid, &params);
        params.counts_alone = false;
    }
    return status == ok ? launch_pass(handle, state, route_kernel, grid, &params) : status;
}

// A CTA of dot products has a token for each warp, one of the others a unit for each thread.
Status move_rows(Handle& handle, void* state, const RowMove& what)
{
    const bool is_dot = what.how == Rows::Dot;
    const int kernel = is_dot ? dot_kernel : what.how == Rows::Gather ? gather_kernel : combine_kernel;
    const int64_t ctas = most_ctas(handle, is_dot ? dot_ctas_per_sm : rows_ctas_per_sm);
    return launch_in_turns(what.tokens, tokens_at_once(what), [&](int64_t first, int64_t count) {
        const RowsParams params = pack_rows(what, first, count);
        const int64_t grid = std::min(ceil_div(params.units, is_dot ? rows_warps : rows_threads), ctas);
        return launch_pass(handle, state, kernel, grid, &params);
    });
}

Status clear_rows(Handle& handle, void* state, const RowClear& what)
{
    const ClearParams params = pack_clear(what, handle.sm_count());
    const int64_t grid = int64_t{params.matrices_at_once} * params.ctas_of_matrix.value;
    return launch_pass(handle, state, clear_kernel, grid, &params);
}

}  // namespace
}  // namespace sm80

const Backend sm80_backend = {
    .name = "sm80",
    .kernels = sm80::kernels,
    .kernel_count = sm80::kernel_count,
    .serves = sm80::serves,
    .open = sm80::open,
    .close = close_kernels,
    .default_workspace = sm80::default_workspace,
    .counter_words = sm80::counter_words,
    .choose = sm80::choose_any,
    .pack = sm80::pack,
    .launch = sm80::launch,
    .batch_invariant = true,
    .stands_aside = nullptr,
    .is_compared = false,
    .takes_groups = true,
    .takes_k_groups = true,
    .takes_gates = true,
    .predict_plan = sm80::predict_plan,
    .sum_leaves = sm80::sum_leaves,
    .move_triangle = sm80::move_triangle,
    .apply_gates = sm80::apply_gates,
    .gate_gradient = sm80::gate_gradient,
    .exchange = sm80::exchange,
    .route = sm80::route,
    .move_rows = sm80::move_rows,
    .clear_rows = sm80::clear_rows,
};

}  // namespace hg
