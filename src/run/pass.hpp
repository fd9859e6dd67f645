// A pass over memory that is no product: one of a backend's functions, on the handle's stream.
#pragma once

#include "src/base/status.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/backend.hpp"
#include "src/run/composite.hpp"
#include "src/run/handle.hpp"
#include "src/run/lending.hpp"

#include <cstddef>

namespace hg {

// `named`: what a handle may have no backend for. `workspace`: bytes that it uses at most.
template <typename What>
Status run_pass(Handle& handle, Status (*Backend::*function)(Handle&, void*, const What&), const What& what,
                const char* named, size_t workspace = 0)
{
    const int index = find_backend(handle, function);
    if (index == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has %s", named);
    Status status = find_place(handle);
    if (status == ok)
        status = provide_workspace(handle, workspace, false);
    if (status != ok)
        return status;
    const driver::Scope scope(handle.context);
    return scope.status() == ok ? (handle.backends[index]->*function)(handle, handle.states[index], what)
                                : scope.status();
}

}  // namespace hg
