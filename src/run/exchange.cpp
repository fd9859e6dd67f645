#include "src/run/exchange.hpp"

#include "src/driver/driver.hpp"
#include "src/plan/backend.hpp"
#include "src/run/composite.hpp"

namespace hg {

Status check_exchanges(const Handle& handle)
{
    return find_backend(handle, &Backend::exchange) < handle.backend_count
               ? ok
               : fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has flags");
}

Status run_exchange(Handle& handle, const Exchange& what)
{
    if (const Status status = check_exchanges(handle); status != ok)
        return status;
    const int index = find_backend(handle, &Backend::exchange);
    const driver::Scope scope(handle.context);
    return scope.status() == ok ? handle.backends[index]->exchange(handle, handle.states[index], what)
                                : scope.status();
}

}  // namespace hg
