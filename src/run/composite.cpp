#include "src/run/composite.hpp"

#include "src/base/log.hpp"
#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"
#include "src/run/execute.hpp"
#include "src/run/gate.hpp"
#include "src/run/lending.hpp"
#include "src/run/tree.hpp"
#include "src/run/triangle.hpp"

#include <algorithm>
#include <string>

namespace hg {

const Composite* composite_of(const hg::Handle& handle, const Problem& problem)
{
    if (problem.triangle != Triangle::Whole)
        return &triangle_composite;
    if (problem.is_gated())
        return &gate_composite;
    return is_tree(handle, problem) ? &tree_composite : nullptr;
}

Status prepare_composite(hg::Handle& handle, const Composite& composite, const Problem& problem)
{
    Needs needs;
    const Status status = composite.check(handle, problem, needs);
    return status == ok ? provide(handle, composite, needs) : status;
}

Status provide(hg::Handle& handle, const Composite& composite, const Needs& needs)
{
    if (const size_t bytes = handle.workspace().bytes; needs.bytes > bytes)
        return fail(HGEMM_STATUS_WORKSPACE_TOO_SMALL,
                    "needs %zu bytes of workspace %s, has %zu: set a larger one by "
                    "hgemm_set_workspace or create the handle with one by hgemm_create_sized",
                    needs.bytes, composite.what, bytes);
    return provide_workspace(handle, needs.bytes, needs.counts);
}

void log_composite(hg::Handle& handle, const Composite& composite, const Problem& problem,
                   const std::string& key)
{
    if (!handle.log.wants(LogLevel::Plan))
        return;
    char asked[256], planned[640];
    problem.print(asked, sizeof asked);
    if (composite.explain(handle, problem, planned, sizeof planned) == ok)
        handle.log.line("plan %s: %s%s", asked, planned, key.c_str());
}

Status run_part(hg::Handle& handle, const Problem& part)
{
    if (part.changes_nothing())
        return ok;
    if (const Composite* const composite = composite_of(handle, part))
        return composite->run(handle, part);
    Plan decided;
    const Status status = decide(handle, part, decided);
    return status == ok ? run_plan(handle, part, decided) : status;
}

void Needs::include(const Needs& other)
{
    bytes = std::max(bytes, other.bytes);
    counts = counts || other.counts;
    predicted_us += other.predicted_us;
}

Status needs_of(hg::Handle& handle, const Problem& part, Needs& needs)
{
    needs = {};
    if (part.changes_nothing())
        return ok;
    if (const Composite* const composite = composite_of(handle, part)) {
        const Status status = composite->check(handle, part, needs);
        needs.predicted_us = 0;  // of all its parts it is not known
        return status;
    }
    Plan decided;
    const Status status = decide(handle, part, decided);
    if (status == ok)
        needs = {decided.workspace, decided.counts, decided.predicted_us};
    return status;
}

}  // namespace hg
