#include "execute.hpp"

#include "dispatch.hpp"
#include "driver.hpp"
#include "lending.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

namespace hg {
namespace {

// Plans as the tuning file says; false if it says nothing that can be done. It was measured on all SMs.
bool decide_by_tuning(const Handle& handle, const Problem& problem, const Options& options, Plan& plan)
{
    if (!handle.tuning)
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
        char asked[256], decided[384];
        problem.print(asked, sizeof asked);
        plan.print(decided, sizeof decided);
        const std::string key = handle.context ? " key=" + tuning_key(problem, handle.options.mode) : "";
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

// hgemm-bench has no command for groups.
void trace_groups(const Log& log, const Problem& p)
{
    char asked[256];
    p.print(asked, sizeof asked);
    log.line("trace grouped %s", asked);
}

// Operands of hgemm-bench have no gaps within a line, and a vector is one line.
bool is_strided(const Problem& p)
{
    const auto has_gaps = [&](const Operand& o, int64_t rows) {
        return p.k > 1 && o.k_stride != 1 && (o.row_stride != 1 || rows == 1);
    };
    return has_gaps(p.a, p.m) || has_gaps(p.b, p.n) || (p.n == 1 && p.m > 1 && p.d.ld != 1);
}

bool mixes_types(const Problem& p)
{
    const Type d = p.d.type;
    return (d != p.type_ab && d != Type::F32) || ((p.c.ptr || p.c.array) && p.c.type != d) ||
           (p.bias.along != BiasAlong::None && p.bias.type != p.type_ab);
}

// Is a matrix one for the whole batch?
bool is_shared(const Problem& p)
{
    const auto is = [](bool array, int64_t stride) { return !array && stride == 0; };
    return p.batch > 1 && p.k > 0 &&
           (is(p.a.array, p.a.batch_stride) || is(p.b.array, p.b.batch_stride) ||
            (p.c.ptr && is(p.c.array, p.c.batch_stride)));
}

// The words of hgemm-bench's --output for what is done with the product. Where it has none for something
// that kernels depend on, the word is one that it refuses, so that nobody measures another product.
std::string describe_output(const Problem& p)
{
    const std::pair<bool, const char*> words[] = {
        {p.a.array || p.b.array || p.c.array || p.d.array, "array"},
        {is_shared(p), "shared"},
        {p.a.batch_stride < 0 || p.b.batch_stride < 0, "reversed"},
        {is_strided(p), "strided"},
        {mixes_types(p), "mixed_types"},
        {p.d.type == Type::F32, "f32"},
        {p.c.ptr || p.c.array, "beta"},
        {p.bias.along == BiasAlong::Columns, "bias"},
        {p.bias.along == BiasAlong::Rows, "bias_rows"},
        {p.activation == Activation::Relu, "relu"},
        {p.activation == Activation::GeluTanh, "gelu"},
        {p.activation == Activation::GeluErf, "gelu_erf"},
        {p.activation == Activation::Silu, "silu"},
        {p.aux.ptr, "aux"}};
    std::string text;
    for (const auto& [is_done, word] : words)
        if (is_done)
            text.append(text.empty() ? " --output " : "+").append(word);
    return text;
}

// Logs a command that runs the problem again: m, n and k of hgemm-bench's row-major D = op(A) * op(B), the
// batch, and the output.
void trace(const Log& log, const Problem& p)
{
    if (p.is_grouped())
        return trace_groups(log, p);
    char batch[24] = "";
    if (p.batch > 1)
        std::snprintf(batch, sizeof batch, "x%" PRId64, p.batch);
    log.line("trace hgemm-bench compare --shapes %" PRId64 "x%" PRId64 "x%" PRId64
             "%s --dtype %s --layout %s%s%s",
             p.m, p.n, p.k, batch, name_of(p.type_ab), p.a.k_stride == 1 || p.m == 1 ? "t" : "n",
             p.b.k_stride == 1 || p.n == 1 ? "n" : "t", describe_output(p).c_str());
}

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

Status launch(Handle& handle, const Plan& plan, const Packed& packed)
{
    int index = 0;
    while (handle.backends[index] != plan.backend)
        ++index;
    return plan.backend->launch(handle, handle.states[index], plan, packed);
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
    status = scope.status() == ok ? launch(handle, known->plan, known->packed) : scope.status();
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
    if (status == ok)
        status = prepare(handle, request, problem, prepared);
    return status == ok ? launch(handle, prepared->plan, prepared->packed) : status;
}

}  // namespace hg
