#include "src/run/composite.hpp"

#include "src/plan/backend.hpp"
#include "src/run/execute.hpp"
#include "src/run/lending.hpp"
#include "src/run/tree.hpp"
#include "src/run/triangle.hpp"

#include <algorithm>

namespace hg {

const Composite* composite_of(const hg::Handle& handle, const Problem& problem)
{
    if (problem.triangle != Triangle::Whole)
        return &triangle_composite;
    return is_tree(handle, problem) ? &tree_composite : nullptr;
}

Status run_part(hg::Handle& handle, const Problem& part)
{
    if (part.changes_nothing())
        return ok;
    if (const Composite* const composite = composite_of(handle, part))
        return composite->run(handle, part);
    Plan decided;
    Packed packed;
    Status status = decide(handle, part, decided);
    if (status == ok)
        status = decided.backend->pack(handle, part, decided, packed);
    return status == ok ? launch_plan(handle, decided, packed) : status;
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
        needs.counts = true;
        return composite->check(handle, part, needs.bytes);
    }
    Plan decided;
    const Status status = decide(handle, part, decided);
    if (status == ok)
        needs = {decided.workspace, decided.counts, decided.predicted_us};
    return status;
}

Status provide(hg::Handle& handle, const Needs& needs, const char* what)
{
    if (const size_t bytes = handle.workspace().bytes; needs.bytes > bytes)
        return fail(HGEMM_STATUS_WORKSPACE_TOO_SMALL,
                    "needs %zu bytes of workspace %s, has %zu: set a larger one by "
                    "hgemm_set_workspace or create the handle with one by hgemm_create_sized",
                    needs.bytes, what, bytes);
    return provide_workspace(handle, needs.bytes, needs.counts);
}

}  // namespace hg
