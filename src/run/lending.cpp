#include "src/run/lending.hpp"

#include "src/driver/driver.hpp"
#include "src/plan/dispatch.hpp"

#include <dlfcn.h>

namespace hg {
namespace {

// Graphs call into this library when they end, perhaps after the program has closed it.
void stay_loaded()
{
    Dl_info found{};
    static constinit char here = 0;
    if (dladdr(&here, &found) && found.dli_fname)
        dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

// A stream that was destroyed may have left its address to one of other SMs.
Status follow(hg::Handle& handle, const driver::Place& last)
{
    if (handle.place.stream == last.stream && handle.place.capture == last.capture)
        return ok;
    driver::StreamOwner owner{};
    const Status status = driver::find_owner(handle.stream, owner);
    if (status == ok)
        adopt(handle, owner);
    return status;
}

}  // namespace

Workspace hg::Handle::borrowed() const
{
    // A product of the caller's workspace keeps its plan, and so its bits, when it is captured.
    const Workspace counted = user.ptr ? user : Workspace{nullptr, lent_limit, nullptr, lent_counters, 0};
    const Block* const block = lent.find(place);
    if (!block)
        return {nullptr, counted.bytes, nullptr, counted.counter_words, 0};
    return {block->memory, counted.bytes, block->counters(), counted.counter_words, block->serial};
}

Status find_place(hg::Handle& handle)
{
    if (handle.lent_limit == 0)
        return ok;
    const driver::Place last = handle.place;
    const driver::Scope scope(handle.context);
    Status status = scope.status();
    if (status == ok)
        status = driver::find_place(handle.stream, handle.place);
    return status == ok ? follow(handle, last) : status;
}

Status provide_workspace(hg::Handle& handle, size_t bytes, bool counts)
{
    if (!handle.borrows() || bytes == 0)
        return ok;
    bytes += handle.reserved;
    const Block* const block = handle.lent.find(handle.place);
    const size_t counters = counts ? handle.workspace().counter_words : 0;
    if (block && block->bytes >= bytes && block->counter_words >= counters)
        return ok;
    return handle.lent.grow(handle.place, handle.stream,
                            {bytes, counters, handle.reserved + handle.workspace().bytes});
}

Status lend(hg::Handle& handle, size_t bytes)
{
    if (bytes > 0) {
        Device whole = handle.device;
        whole.sm_count = handle.all_sm_count;
        const driver::Scope scope(handle.context);
        const Status status = scope.status() == ok ? handle.lent.open(handle.context) : scope.status();
        if (status != ok)
            return status;
        handle.lent_counters = counter_words(whole, handle.served_by(), bytes);
        stay_loaded();
        driver::keep_images();
    }
    handle.lent_limit = bytes;
    return ok;
}

}  // namespace hg
