// The settings of a handle: what the public functions set, and what they tell of it. And the logger, for
// all handles that are created later.
#include "src/base/log.hpp"
#include "src/base/status.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"
#include "src/run/lending.hpp"

namespace hg {
namespace {

// Is it a stream that the handle can use?
Status check_owner(const Handle& handle, hgemm_stream_t stream, const driver::StreamOwner& owner)
{
    auto* const address = static_cast<void*>(stream);
    if (!owner.context)
        return fail_argument(2, "stream", "is %p, must be a CUDA stream", address);
    if (owner.context == handle.context || owner.primary == handle.context)
        return ok;
    if (owner.primary)
        return fail_argument(
            2, "stream", "is %p of a green context of context %p, must belong to the handle's context %p",
            address, owner.primary, handle.context);
    return fail_argument(2, "stream", "is %p of context %p, must belong to the handle's context %p",
                         address, owner.context, handle.context);
}

}  // namespace
}  // namespace hg

using namespace hg;

extern "C" hgemm_status_t hgemm_set_stream(hgemm_handle_t handle, hgemm_stream_t stream)
{
    return with_handle("hgemm_set_stream", handle, [&](Handle& h) {
        if (!h.context && stream)
            return fail_argument(2, "stream", "is %p, must be NULL: the handle computes on the host",
                                 static_cast<void*>(stream));
        if (h.context) {
            const driver::Scope scope(h.context);
            driver::StreamOwner owner{};
            Status status = scope.status();
            if (status == ok)
                status = driver::find_owner(stream, owner);
            if (status == ok && stream)
                status = check_owner(h, stream, owner);
            if (status != ok)
                return status;
            driver::Place place{};
            if (h.lent_limit > 0)
                status = driver::find_place(stream, place);
            if (status != ok)
                return status;
            adopt(h, owner);
            h.place = place;
        }
        h.stream = stream;
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_get_stream(hgemm_handle_t handle, hgemm_stream_t* stream)
{
    return with_handle("hgemm_get_stream", handle, [&](Handle& h) {
        if (!stream)
            return fail_argument(2, "stream", "is NULL, must point to an hgemm_stream_t");
        *stream = h.stream;
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_set_workspace(hgemm_handle_t handle, void* workspace, size_t bytes)
{
    return with_handle("hgemm_set_workspace", handle, [&](Handle& h) {
        if (!workspace && bytes > 0)
            return fail_argument(2, "workspace", "is NULL, must point to %zu bytes", bytes);
        if (reinterpret_cast<uintptr_t>(workspace) % workspace_alignment != 0)
            return fail_argument(2, "workspace", "is %p, must be aligned to %zu bytes", workspace,
                                 workspace_alignment);
        h.user = {workspace, bytes, nullptr, 0, 0};
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_set_workspace_per_stream(hgemm_handle_t handle, size_t bytes)
{
    return with_handle("hgemm_set_workspace_per_stream", handle, [&](Handle& h) {
        if (!h.context && bytes > 0)
            return fail_argument(2, "bytes", "is %zu, must be 0: the handle computes on the host", bytes);
        if (bytes > max_workspace_bytes)
            return fail_argument(2, "bytes", "is %zu, must be at most 2^46", bytes);
        return lend(h, bytes);
    });
}

extern "C" hgemm_status_t hgemm_get_workspace_per_stream(hgemm_handle_t handle, size_t* bytes)
{
    return with_handle("hgemm_get_workspace_per_stream", handle, [&](Handle& h) {
        if (!bytes)
            return fail_argument(2, "bytes", "is NULL, must point to a size_t");
        *bytes = h.lent_limit;
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_set_mode(hgemm_handle_t handle, hgemm_mode_t mode)
{
    return with_handle("hgemm_set_mode", handle, [&](Handle& h) {
        const int value = mode;
        if (value < HGEMM_MODE_DEFAULT || value > HGEMM_MODE_TREE)
            return fail_argument(2, "mode", "is %d, must be 0 (default), 1 (batch-invariant) or 2 (tree)",
                                 value);
        for (int i = 0; value != HGEMM_MODE_DEFAULT && i < h.backend_count; ++i)
            if (!h.backends[i]->batch_invariant)
                return fail(HGEMM_STATUS_NOT_SUPPORTED, "backend %s has no batch-invariant mode",
                            h.backends[i]->name);
        h.options.mode = static_cast<Mode>(value);
        h.cache->clear();
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_set_sm_count(hgemm_handle_t handle, int count)
{
    return with_handle("hgemm_set_sm_count", handle, [&](Handle& h) {
        if (count < 0)
            return fail_argument(2, "count", "is %d, must be at least 0", count);
        h.options.sm_limit = count;
        h.cache->clear();
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_get_workspace(hgemm_handle_t handle, void** workspace, size_t* bytes)
{
    return with_handle("hgemm_get_workspace", handle, [&](Handle& h) {
        if (!workspace)
            return fail_argument(2, "workspace", "is NULL, must point to a void *");
        if (!bytes)
            return fail_argument(3, "bytes", "is NULL, must point to a size_t");
        if (const Status status = find_place(h); status != ok)
            return status;
        *workspace = h.workspace().ptr;
        *bytes = h.workspace().bytes;
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_get_mode(hgemm_handle_t handle, hgemm_mode_t* mode)
{
    return with_handle("hgemm_get_mode", handle, [&](Handle& h) {
        if (!mode)
            return fail_argument(2, "mode", "is NULL, must point to an hgemm_mode_t");
        *mode = static_cast<hgemm_mode_t>(h.options.mode);
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_get_sm_count(hgemm_handle_t handle, int* count)
{
    return with_handle("hgemm_get_sm_count", handle, [&](Handle& h) {
        if (!count)
            return fail_argument(2, "count", "is NULL, must point to an int");
        *count = h.options.sm_limit;
        return ok;
    });
}

extern "C" hgemm_status_t hgemm_get_device(hgemm_handle_t handle, int* device)
{
    return with_handle("hgemm_get_device", handle, [&](Handle& h) {
        if (!device)
            return fail_argument(2, "device", "is NULL, must point to an int");
        *device = h.device.ordinal;
        return ok;
    });
}

extern "C" const char* hgemm_backend(hgemm_handle_t handle)
{
    const Handle* h = find_handle(handle);
    return h ? h->backends[0]->name : "";
}

extern "C" hgemm_status_t hgemm_set_logger(hgemm_log_level_t level, hgemm_logger_t logger, void* data)
{
    const Call call("hgemm_set_logger");
    return set_logger(level, logger, data);
}
