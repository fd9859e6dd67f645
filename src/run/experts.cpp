#include "src/run/experts.hpp"

#include "src/driver/driver.hpp"
#include "src/plan/backend.hpp"
#include "src/run/composite.hpp"
#include "src/run/lending.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hg {
namespace {

// What its kernels use of the workspace at most.
size_t needs_of(const hg::Handle& handle, const Route& what)
{
    const int64_t ctas = std::min<int64_t>(what.ctas(), handle.sm_count());
    return ctas > 1 ? std::min(static_cast<size_t>(ctas * what.counts_bytes()), handle.workspace().bytes)
                    : 0;
}

size_t needs_of(const hg::Handle&, const RowMove&) { return 0; }

template <typename What>
Status run(hg::Handle& handle, Status (*Backend::*function)(hg::Handle&, void*, const What&),
           const What& what)
{
    const int index = find_backend(handle, function);
    if (index == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has layers of experts");
    Status status = find_place(handle);
    if (status == ok)
        status = provide_workspace(handle, needs_of(handle, what), false);
    if (status != ok)
        return status;
    const driver::Scope scope(handle.context);
    return scope.status() == ok ? (handle.backends[index]->*function)(handle, handle.states[index], what)
                                : scope.status();
}

}  // namespace

Status run_route(Handle& handle, const Route& what) { return run(handle, &Backend::route, what); }

Status run_rows(Handle& handle, const RowMove& what) { return run(handle, &Backend::move_rows, what); }

}  // namespace hg
