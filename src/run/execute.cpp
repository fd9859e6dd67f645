#include "src/run/execute.hpp"

#include "src/driver/driver.hpp"
#include "src/plan/dispatch.hpp"
#include "src/run/composite.hpp"
#include "src/run/lending.hpp"
#include "src/run/trace.hpp"
#include "src/tuning/key.hpp"

#include <string>

namespace hg {
namespace {

// Plans as the tuning file says; false if it says nothing that can be done. It was measured on all SMs, and
// knows nothing of leaves.
bool decide_by_tuning(const Handle& handle, const Problem& problem, const Options& options, Plan& plan)
{
    if (!handle.tuning || problem.leaves > 1)
        return false;
    const std::string key = tuning_key(problem, options.mode);
    const std::string_view kernel = handle.tuning->find(key);
    if (kernel.empty())
        return false;
    const char* const refusal =
        options.sm_limit > 0 || handle.device.sm_count < handle.all_sm_count
            ? "the handle may not use all SMs"
            : make_tuned_plan(kernel, problem, handle.device, options, handle.served_by(), plan);
    if (refusal && handle.log.wants(LogLevel::Plan))
        handle.log.line("tuned choice %.*s of %s is not used: %s", static_cast<int>(kernel.size()),
                        kernel.data(), key.c_str(), refusal);
    return !refusal;
}

}  // namespace

Status decide(Handle& handle, const Problem& problem, Plan& plan)
{
    if (const Plan* known = handle.cache->find_plan(problem, handle.workspace())) {
        plan = *known;
        return ok;
    }
    const Options options = handle.planning_options();
    const Status status = decide_by_tuning(handle, problem, options, plan)
                              ? ok
                              : make_plan(problem, handle.device, options, handle.served_by(), plan);
    if (status == ok)
        handle.cache->keep_plan(problem, handle.workspace(), plan);
    return status;
}

Status plan(Handle& handle, const Problem& problem, Plan& plan)
{
    if (const Status status = decide(handle, problem, plan); status != ok)
        return status;
    if (handle.log.wants(LogLevel::Plan)) {
        char asked[256], decided[512];
        problem.print(asked, sizeof asked);
        plan.print(decided, sizeof decided);
        const Mode mode = handle.planning_options().mode;
        const bool has_key = handle.context && problem.leaves <= 1;
        const std::string key = has_key ? " key=" + tuning_key(problem, mode) : "";
        handle.log.line("plan %s: %s%s", asked, decided, key.c_str());
    }
    return ok;
}

Status check_workspace(const Handle& handle, const Plan& plan)
{
    const size_t bytes = handle.workspace().bytes;
    if (plan.workspace <= bytes)
        return ok;
    return fail(
        HGEMM_STATUS_WORKSPACE_TOO_SMALL,
        "needs %zu bytes of workspace, has %zu: set a larger one by hgemm_set_workspace or create the "
        "handle with one by hgemm_create_sized",
        plan.workspace, bytes);
}

namespace {

// Plans and packs.
Status prepare(Handle& handle, const Request& request, const Problem& problem,
               const PlanCache::Launch*& prepared)
{
    Plan decided;
    if (Status status = plan(handle, problem, decided); status != ok)
        return status;
    if (Status status = check_workspace(handle, decided); status != ok)
        return status;
    if (Status status = provide_workspace(handle, decided.workspace, decided.counts); status != ok)
        return status;
    PlanCache::Launch& entry = handle.cache->entry_for(request, handle.workspace());
    entry.plan = decided;
    if (Status status = decided.backend->pack(handle, problem, decided, entry.packed); status != ok)
        return status;
    handle.cache->keep(entry);
    prepared = &entry;
    return ok;
}

}  // namespace

Status launch_plan(Handle& handle, const Plan& plan, const Packed& packed)
{
    int index = 0;
    while (handle.backends[index] != plan.backend)
        ++index;
    return plan.backend->launch(handle, handle.states[index], plan, packed);
}

Status run_plan(Handle& handle, const Problem& problem, const Plan& plan)
{
    Packed packed;
    const Status status = plan.backend->pack(handle, problem, plan, packed);
    return status == ok ? launch_plan(handle, plan, packed) : status;
}

bool repeat(Handle& handle, const Request& request, Status& status)
{
    if (status = find_place(handle); status != ok)
        return true;
    // The host reads arrays of pointers, which may hold others than those that were checked.
    const bool unchecked = !handle.context && request.d_array;
    if (unchecked || handle.log.wants(LogLevel::Plan))
        return false;
    const PlanCache::Launch* known = handle.cache->find_launch(request, handle.workspace());
    if (!known)
        return false;
    const driver::Scope scope(handle.context);
    status = scope.status() == ok ? launch_plan(handle, known->plan, known->packed) : scope.status();
    return true;
}

Status execute(Handle& handle, const Request& request, const Problem& problem)
{
    if (problem.changes_nothing())
        return ok;
    if (handle.log.wants(LogLevel::Trace))
        trace(handle.log, problem);
    const driver::Scope scope(handle.context);
    const PlanCache::Launch* prepared = nullptr;
    Status status = scope.status();
    Problem whole = problem;
    if (status == ok)
        if (const Composite* const composite = composite_of(handle, problem))
            if (!composite->is_one_kernel || !composite->is_one_kernel(handle, problem, whole))
                return composite->run(handle, problem);
    if (status == ok)
        status = prepare(handle, request, whole, prepared);
    return status == ok ? launch_plan(handle, prepared->plan, prepared->packed) : status;
}

}  // namespace hg
