#include "arch/host/backend.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/host/gemm.hpp"
#include "arch/host/openblas.hpp"
#include "arch/host/rows/kernels.hpp"
#include "arch/host/rows/rows.hpp"
#include "src/run/handle.hpp"

#include <algorithm>
#include <iterator>
#include <new>

namespace hg {
namespace {

constexpr int host_blocked = 0, host_rows = 1;
constexpr KernelInfo kernels[] = {
    {"host_blocked", block_m, block_n, block_k, 1, 1, 0},
    {"host_rows", few_rows, rows_padding, 1, 1, 1, 0},
};

constexpr Offered offered{.split = false, .swap_ab = false, .stream_k = false, .pdl = Pdl::Off};

bool serves(const Device& device) { return device.ordinal == HGEMM_DEVICE_HOST; }

Status open(const Device& device, void** state)
{
    *state = nullptr;
    OpenBlas blas;
    if (const Status status = find_openblas(blas); status != ok)
        return status;
    try {
        *state = new HostState{blas, Pool::shared(device.sm_count - 1)};
    } catch (const std::bad_alloc&) {
        return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for the state of the host backend");
    }
    return ok;
}

void close(void* state) { delete static_cast<HostState*>(state); }

size_t default_workspace(const Device&) { return max_workspace(); }

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan)
{
    const bool may_block = !is_forced_away(options, kernels[host_blocked]),
               may_use_rows = !is_forced_away(options, kernels[host_rows]);
    plan.kernel = may_use_rows && is_few_rows(problem) ? host_rows : host_blocked;
    plan.refusal = not_offered(options, offered);
    if (plan.kernel == host_blocked && !may_block)
        plan.refusal =
            may_use_rows
                ? "host_rows is for up to 8 rows or columns of D and an operand of the other side whose "
                  "elements are contiguous in one direction"
                : "the host has the kernels host_blocked and host_rows";
    if (plan.refusal)
        return false;
    plan.backend = &host_backend;
    plan.variant = 0;
    plan.split = 1;
    plan.grid = options.sm_count(device);
    if (plan.kernel == host_rows) {
        plan.tiles =
            count_tiles(problem, std::min(problem.m, rows_padding), std::min(problem.n, rows_padding));
        plan.workspace = 0;
    } else {
        const Blocks blocks = blocks_of(problem);
        plan.tiles = count_tiles(problem, blocks.m, blocks.n);
        plan.workspace = blocks.workspace();
    }
    plan.predicted_us = 0;
    plan.why = *options.kernel ? Why::Forced : Why::Model;
    return true;
}

Status pack(const Handle&, const Problem& problem, const Plan&, Packed& packed)
{
    packed.as<Problem>() = problem;
    return ok;
}

Status launch(Handle& handle, void* state, const Plan& plan, const Packed& packed)
{
    const Workspace workspace = handle.workspace();
    if (workspace.bytes < plan.workspace)
        return fail(HGEMM_STATUS_WORKSPACE_TOO_SMALL, "needs %zu bytes of workspace, has %zu",
                    plan.workspace, workspace.bytes);
    HostState& host = *static_cast<HostState*>(state);
    const Problem& problem = packed.as<Problem>();
    if (plan.kernel == host_rows)
        multiply_rows(*host.pool, best_rows_kernels(), problem, handle.sm_count());
    else
        multiply(host, problem, workspace.ptr, handle.sm_count());
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
    .batch_invariant = false,
    .stands_aside = nullptr,
    .takes_groups = false,
};

}  // namespace hg
