#include "src/run/gate.hpp"

#include "arch/common/types.hpp"
#include "src/base/decimal.hpp"
#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/dispatch.hpp"
#include "src/plan/gate.hpp"
#include "src/run/execute.hpp"
#include "src/run/pass.hpp"
#include "src/run/reserved.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace hg {
namespace {

// How a problem runs.
struct Way {
    bool by_kernel;  // which is planned; else in parts
    Plan plan;
    GateCut cut;
    Needs needs;
    int64_t launches;
};

int find_gater(const hg::Handle& handle) { return find_backend(handle, &Backend::apply_gates); }

// Where sums count as lying before there is a workspace: plans depend on their alignment alone.
float* any_sums() { return reinterpret_cast<float*>(workspace_alignment); }

// A launch, and the pass, which reads two sums for each element that it writes.
double us_of_pass(const hg::Handle& handle, const GatePass& pass)
{
    constexpr double us_of_launch = 2;
    const double elements = static_cast<double>(pass.rows * pass.batch) * static_cast<double>(pass.columns);
    const auto bytes = static_cast<double>(2 * bytes_of(Type::F32) + bytes_of(pass.d.type));
    const auto bandwidth = static_cast<double>(handle.device.memory_bandwidth);
    return bandwidth > 0 ? us_of_launch + 1e6 * elements * bytes / bandwidth : 0;
}

// What all parts need beside the sums.
Status needs_of_parts(hg::Handle& handle, const Problem& p, Way& way, Needs& needs)
{
    const Reserved reserved(handle, way.cut.sums_bytes);
    Status status = ok;
    way.launches = 0;
    for_each_gate_piece(p, way.cut, [&](const GatePiece& piece) {
        for (int i = 0; status == ok && i < way.cut.products(); ++i) {
            Needs of_part;
            status = needs_of(handle, product_of(p, way.cut, piece, i, any_sums()), of_part);
            needs.include(of_part);
            ++way.launches;
        }
        needs.predicted_us += us_of_pass(handle, pass_of(p, way.cut, piece, any_sums()));
        ++way.launches;
    });
    return status;
}

Status plan_parts(hg::Handle& handle, const Problem& p, Way& way)
{
    way.by_kernel = false;
    return plan_in_workspace(handle, way.needs, [&](size_t room, Needs& needs, size_t& kept) {
        way.cut = cut_gates(p, room);
        kept = way.cut.sums_bytes;
        return needs_of_parts(handle, p, way, needs);
    });
}

// A kernel for the whole problem. Not where the product's K is summed in parts.
bool find_kernel(hg::Handle& handle, const Problem& p, Plan& plan)
{
    return !composite_of(handle, p.without_gates()) &&
           try_plan(p, handle.device, handle.planning_options(), handle.served_by(), plan) &&
           plan.workspace <= handle.workspace().bytes;
}

void take_kernel(const Plan& plan, Way& way)
{
    way.by_kernel = true;
    way.plan = plan;
    way.needs = {plan.workspace, plan.counts, plan.predicted_us};
    way.launches = 1;
}

// The faster way, as the cost models expect; the kernel that was forced, if it serves the problem.
Status search_way(hg::Handle& handle, const Problem& p, Way& way)
{
    Plan plan{};
    if (!find_kernel(handle, p, plan))
        return plan_parts(handle, p, way);
    const KeptError kept;  // of parts that are refused
    const bool in_parts = plan.why != Why::Forced && plan_parts(handle, p, way) == ok &&
                          way.needs.bytes <= handle.workspace().bytes &&
                          way.needs.predicted_us < plan.predicted_us;
    if (!in_parts)
        take_kernel(plan, way);
    return ok;
}

// The plan cache keeps a plan without a backend for what runs in parts.
Status find_way(hg::Handle& handle, const Problem& p, Way& way)
{
    if (find_gater(handle) == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has gates");
    if (const Plan* known = handle.cache->find_plan(p, handle.workspace())) {
        if (!known->backend)
            return plan_parts(handle, p, way);
        take_kernel(*known, way);
        return ok;
    }
    const Status status = search_way(handle, p, way);
    if (status == ok)
        handle.cache->keep_plan(p, handle.workspace(), way.by_kernel ? way.plan : Plan{});
    return status;
}

Status check_gate(hg::Handle& handle, const Problem& p, Needs& needs)
{
    Way way{};
    const Status status = find_way(handle, p, way);
    needs = way.needs;
    return status;
}

Status explain_gate(hg::Handle& handle, const Problem& p, char* text, size_t length)
{
    Way way{};
    const Status status = find_way(handle, p, way);
    if (status == ok && way.by_kernel)
        way.plan.print(text, length);
    else if (status == ok)
        std::snprintf(text, length,
                      "gates in %" PRId64 " launches, at most %" PRId64 " x %" PRId64 " of D of %" PRId64
                      " problems at a time, workspace=%zu, gated by %s predicted_us=%s",
                      way.launches, way.cut.rows, way.cut.columns, way.cut.problems, way.needs.bytes,
                      handle.backends[find_gater(handle)]->name, fixed(way.needs.predicted_us, 1).text());
    return status;
}

Status run_piece(hg::Handle& handle, const Problem& p, const GateCut& cut, const GatePiece& piece)
{
    auto* const sums = static_cast<float*>(handle.workspace().ptr);
    const Reserved reserved(handle, cut.sums_bytes);
    Status status = ok;
    for (int i = 0; status == ok && i < cut.products(); ++i)
        status = run_part(handle, product_of(p, cut, piece, i, sums));
    const int gater = find_gater(handle);
    return status == ok ? handle.backends[gater]->apply_gates(handle, handle.states[gater],
                                                              pass_of(p, cut, piece, sums))
                        : status;
}

Status run_gate(hg::Handle& handle, const Problem& p)
{
    Way way{};
    Status status = find_way(handle, p, way);
    if (status == ok)
        status = provide(handle, gate_composite, way.needs);
    if (status == ok)
        log_composite(handle, gate_composite, p, "");
    if (status == ok && way.by_kernel)
        return run_plan(handle, p, way.plan);
    if (status == ok)
        for_each_gate_piece(p, way.cut, [&](const GatePiece& piece) {
            if (status == ok)
                status = run_piece(handle, p, way.cut, piece);
        });
    return status;
}

}  // namespace

const Composite gate_composite = {
    .what = "for gates", .check = check_gate, .run = run_gate, .explain = explain_gate};

Status run_gate_gradient(Handle& handle, const GateGradient& what)
{
    return run_pass(handle, &Backend::gate_gradient, what, "gradients of gates");
}

}  // namespace hg
