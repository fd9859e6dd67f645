#include "arch/host/backend.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/host/gemm.hpp"
#include "arch/host/openblas.hpp"
#include "arch/host/packed/kernels.hpp"
#include "arch/host/packed/packed.hpp"
#include "arch/host/passes/exchange.hpp"
#include "arch/host/passes/experts.hpp"
#include "arch/host/passes/gate.hpp"
#include "arch/host/passes/tree.hpp"
#include "arch/host/passes/triangle.hpp"
#include "arch/host/rows/kernels.hpp"
#include "arch/host/rows/rows.hpp"
#include "src/plan/exchange.hpp"
#include "src/plan/experts.hpp"
#include "src/plan/gate.hpp"
#include "src/plan/tree.hpp"
#include "src/run/handle.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

namespace hg {
namespace {

constexpr int host_blocked = 0, host_rows = 1, host_packed = 2, host_amx = 3;
// OpenBLAS adds in another order at the edges of its blocks, host_rows where a line ends.
constexpr KernelInfo kernels[] = {
    {"host_blocked", block_m, block_n, block_k, 1, 1, 0, /*unaligned=*/false, /*uneven=*/true},
    {"host_rows", few_rows, rows_padding, 1, 1, 1, 0, /*unaligned=*/false, /*uneven=*/true},
    {"host_packed", packed_rows, packed_columns, packed_depth, 1, 1, 0},
    {"host_amx", packed_rows, packed_columns, packed_depth, 1, 1, 0},
};

constexpr Offered offered{.split = false, .swap_ab = false, .stream_k = false, .pdl = Pdl::Off};

bool serves(const Device& device) { return device.ordinal == HGEMM_DEVICE_HOST; }

// A handle's state: it keeps the pool.
using SharedPool = std::shared_ptr<Pool>;

Status open(const Device& device, void** state)
{
    *state = nullptr;
    openblas();  // the loader is asked here, not in a compute call
    try {
        *state = new SharedPool(Pool::shared(device.sm_count - 1));
    } catch (const std::bad_alloc&) {
        return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for the state of the host backend");
    }
    return ok;
}

void close(void* state) { delete static_cast<SharedPool*>(state); }

const char* remark() { return openblas().sgemm ? nullptr : openblas().missing; }

bool serves_amx(Type type)
{
    const PackedKernels* const kernels = amx_kernels();
    return kernels && kernels->pack(type) && kernels->runs_here();
}

size_t default_workspace(const Device& device)
{
    size_t most = max_workspace();
    for (const Type type : {Type::F16, Type::BF16}) {
        most = std::max(most, max_packed_workspace(best_packed_kernels(type), device.sm_count));
        if (serves_amx(type))
            most = std::max(most, max_packed_workspace(*amx_kernels(), device.sm_count));
    }
    // Memory that nothing touches before a tree's sums do costs address space alone.
    constexpr size_t tree_room = size_t{64} << 20;
    return most + tree_room;
}

// What pack() leaves to launch().
struct HostCall {
    Problem problem;
    PackedBlocks blocks;  // of host_packed and host_amx
};

bool is_packed(int kernel) { return kernel == host_packed || kernel == host_amx; }

const PackedKernels& packed_kernels_of(int kernel, Type type)
{
    return kernel == host_amx ? *amx_kernels() : best_packed_kernels(type);
}

// Few rows or columns of D: as measured, OpenBLAS is slower there even where its tiles are faster.
constexpr int64_t some_rows = 64;

bool is_packed_fastest(const Problem& problem)
{
    return best_packed_kernels(problem.type_ab).leads || std::min(problem.m, problem.n) <= some_rows;
}

// From three rows on: 8 x 4096 x 4096 by one thread takes 1.6 ms, by host_rows 3.1; two rows 1.6 and 1.4.
bool is_amx_fastest_for_few(const Problem& problem)
{
    return serves_amx(problem.type_ab) && std::min(problem.m, problem.n) > 2 &&
           reads_lines(*amx_kernels(), problem);
}

// Why a kernel cannot be used; null if it can.
const char* obstacle(int kernel, const Problem& problem, const Options& options)
{
    if (is_forced_away(options, kernels[kernel]))
        return "the host has the kernels host_blocked, host_rows, host_packed and host_amx";
    if (options.mode == Mode::BatchInvariant && kernel != host_packed)
        return "host_packed alone has a batch-invariant mode";
    if (kernel == host_blocked && !openblas().sgemm)
        return "host_blocked needs OpenBLAS, which was not found";
    if (kernel == host_amx && !serves_amx(problem.type_ab))
        return "host_amx is for bf16 and a processor that has AMX";
    if (kernel == host_rows && !is_few_rows(problem))
        return "host_rows is for up to 8 rows or columns of D and an operand of the other side whose "
               "elements are contiguous in one direction";
    return nullptr;
}

int choose_kernel(const Problem& problem, const Options& options, const char*& refusal)
{
    int order[] = {host_rows, host_amx, host_packed, host_blocked};
    if (!is_packed_fastest(problem))
        std::swap(order[2], order[3]);
    if (is_amx_fastest_for_few(problem))
        std::swap(order[0], order[1]);
    for (const int kernel : order) {
        const char* const why = obstacle(kernel, problem, options);
        if (!why)
            return kernel;
        if (!refusal || !is_forced_away(options, kernels[kernel]))
            refusal = why;
    }
    return -1;
}

void set_work(const Problem& problem, const Device& device, const Options& options, Plan& plan)
{
    int64_t m = std::min(problem.m, rows_padding), n = std::min(problem.n, rows_padding);
    plan.workspace = 0;
    plan.grid = options.sm_count(device);
    if (plan.kernel == host_blocked) {
        const Blocks blocks = blocks_of(problem);
        m = blocks.m, n = blocks.n;
        plan.workspace = blocks.workspace();
    } else if (is_packed(plan.kernel)) {
        const PackedBlocks blocks = packed_blocks(packed_kernels_of(plan.kernel, problem.type_ab), problem,
                                                  options.sm_count(device), options.workspace);
        m = blocks.m, n = blocks.n;
        plan.workspace = blocks.workspace();
        plan.grid = blocks.parts;
    }
    plan.tiles = count_tiles(problem, m, n);
}

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan)
{
    plan.refusal = not_offered(options, offered);
    if (plan.refusal)
        return false;
    plan.kernel = choose_kernel(problem, options, plan.refusal);
    if (plan.kernel < 0)
        return false;
    plan.refusal = nullptr;
    plan.backend = &host_backend;
    plan.variant = 0;
    plan.split = 1;
    set_work(problem, device, options, plan);
    for (const int other : {host_packed, host_blocked}) {  // which may need less
        if (plan.workspace <= options.workspace || !is_packed(plan.kernel) ||
            obstacle(other, problem, options))
            continue;
        Plan smaller = plan;
        smaller.kernel = other;
        set_work(problem, device, options, smaller);
        if (smaller.workspace <= options.workspace)
            plan = smaller;
    }
    plan.predicted_us = 0;
    plan.why = *options.kernel ? Why::Forced : Why::Model;
    return true;
}

Status pack(const Handle& handle, const Problem& problem, const Plan& plan, Packed& packed)
{
    packed.as<HostCall>() = {problem, {}};
    if (is_packed(plan.kernel))
        packed.as<HostCall>().blocks =
            packed_blocks(packed_kernels_of(plan.kernel, problem.type_ab), problem,
                          handle.options.sm_count(handle.device), plan.workspace);
    return ok;
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    const Workspace workspace = handle.workspace();
    if (workspace.bytes < plan.workspace)
        return fail(HGEMM_STATUS_WORKSPACE_TOO_SMALL, "needs %zu bytes of workspace, has %zu",
                    plan.workspace, workspace.bytes);
    Pool& pool = **static_cast<SharedPool*>(state);
    const auto& [problem, blocks] = packed.as<HostCall>();
    if (plan.kernel == host_rows)
        multiply_rows(pool, best_rows_kernels(), problem, handle.sm_count());
    else if (is_packed(plan.kernel))
        multiply_packed(pool, packed_kernels_of(plan.kernel, problem.type_ab), problem, blocks,
                        workspace.ptr);
    else
        multiply(openblas(), pool, problem, workspace.ptr, handle.sm_count());
    return ok;
}

Status sum_leaves(Handle& handle, void* state, const Problem& output, const LeafSums& sums)
{
    sum_tree(**static_cast<SharedPool*>(state), output, sums, handle.sm_count());
    return ok;
}

Status move_triangle(Handle& handle, void* state, const TriangleMove& move)
{
    move_triangle(**static_cast<SharedPool*>(state), move, handle.sm_count());
    return ok;
}

Status apply_gates(Handle& handle, void* state, const GatePass& pass)
{
    apply_gates(**static_cast<SharedPool*>(state), pass, handle.sm_count());
    return ok;
}

Status gate_gradient(Handle& handle, void* state, const GateGradient& what)
{
    differentiate_gates(**static_cast<SharedPool*>(state), what, handle.sm_count());
    return ok;
}

Status exchange(Handle& handle, void* state, const Exchange& what)
{
    exchange(**static_cast<SharedPool*>(state), what, handle.sm_count());
    return ok;
}

Status route(Handle&, void*, const Route& what)
{
    route(what);
    return ok;
}

Status move_rows(Handle& handle, void* state, const RowMove& what)
{
    move_rows(**static_cast<SharedPool*>(state), what, handle.sm_count());
    return ok;
}

Status clear_rows(Handle&, void*, const RowClear& what)
{
    clear_rows(what);
    return ok;
}

}  // namespace

const Backend host_backend = {
    .name = "host",
    .kernels = kernels,
    .kernel_count = std::size(kernels),
    .serves = serves,
    .open = open,
    .close = close,
    .default_workspace = default_workspace,
    .counter_words = nullptr,
    .choose = choose,
    .pack = pack,
    .launch = launch,
    .batch_invariant = true,
    .stands_aside = nullptr,
    .takes_groups = false,
    .sum_leaves = sum_leaves,
    .move_triangle = move_triangle,
    .apply_gates = apply_gates,
    .gate_gradient = gate_gradient,
    .exchange = exchange,
    .route = route,
    .move_rows = move_rows,
    .clear_rows = clear_rows,
    .remark = remark,
};

}  // namespace hg
