#include "src/run/experts.hpp"

#include "src/plan/backend.hpp"
#include "src/run/pass.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hg {
namespace {

constexpr const char* layers = "layers of experts";

// What its kernels use of the workspace at most.
size_t needs_of(const Handle& handle, const Route& what)
{
    const int64_t ctas = std::min<int64_t>(what.ctas(), handle.sm_count());
    return ctas > 1 ? std::min(static_cast<size_t>(ctas * what.counts_bytes()), handle.workspace().bytes)
                    : 0;
}

}  // namespace

Status run_route(Handle& handle, const Route& what)
{
    return run_pass(handle, &Backend::route, what, layers, needs_of(handle, what));
}

Status run_rows(Handle& handle, const RowMove& what)
{
    return run_pass(handle, &Backend::move_rows, what, layers);
}

Status run_clear(Handle& handle, const RowClear& what)
{
    return run_pass(handle, &Backend::clear_rows, what, layers);
}

}  // namespace hg
