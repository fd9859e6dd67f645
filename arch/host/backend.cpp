#include "arch/host/backend.hpp"

#include "arch/common/pack.hpp"
#include "arch/common/settings.hpp"
#include "arch/host/gemm.hpp"
#include "src/float_environment.hpp"
#include "src/handle.hpp"

#include <algorithm>
#include <new>

namespace hg {
namespace {

const Row rows[] = {{"host_blocked", block_m, block_n, block_k, 1, 1, 0}};

constexpr Offered offered{.split = false, .swapped = false, .stream = false, .overlap = Overlap::None};

bool serves(const Device& device) { return device.ordinal == HGEMM_DEVICE_HOST; }

Status open(const Device& device, void** state)
{
    *state = nullptr;
    // The threads that OpenBLAS and the pool start compute in the environment of the one that starts them.
    const FloatEnvironment environment;
    OpenBlas blas;
    if (const Status status = load_openblas(openblas_names, blas); status != ok)
        return status;
    try {
        *state = new HostState{blas, Pool::shared(device.sm_count - 1)};
    } catch (const std::bad_alloc&) {
        return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for the state of the host backend");
    }
    return ok;
}

void close(void* state) { delete static_cast<HostState*>(state); }

size_t default_workspace(const Device&) { return largest_workspace(); }

bool choose(const Problem& problem, const Device& device, const Options& options, Plan& plan)
{
    plan.refusal = is_forced_away(options, rows[0]) ? "the host has one kernel, host_blocked"
                                                    : not_offered(options, offered);
    if (plan.refusal)
        return false;
    const Blocks blocks = blocks_of(problem);
    plan.backend = &host_backend;
    plan.row = plan.variant = 0;
    plan.split = 1;
    plan.tiles = count_tiles(problem, blocks.m, blocks.n);
    plan.grid = options.sm_count(device);
    plan.workspace = blocks.workspace();
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
    const FloatEnvironment environment;
    multiply(*static_cast<HostState*>(state), packed.as<Problem>(), workspace.ptr, handle.sm_count());
    return ok;
}

}  // namespace

const Backend host_backend = {
    "host", rows, 1, serves, open, close, default_workspace, nullptr, choose, pack, launch, false,
};

}  // namespace hg
