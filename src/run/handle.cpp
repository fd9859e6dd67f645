#include "src/run/handle.hpp"

#include "src/base/side_by_side.hpp"
#include "src/base/status.hpp"
#include "src/check/host_memory.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/dispatch.hpp"
#include "src/plan/options.hpp"
#include "src/run/handle_table.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace hg {
namespace {

constexpr int index_bits = 16, generation_bits = sizeof(uintptr_t) * 8 - 4 - index_bits;
constinit HandleTable<Handle, index_bits, generation_bits> handles;

Device host_device()
{
    cpu_set_t cpus;
    const bool known = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
    Device device{};
    device.ordinal = HGEMM_DEVICE_HOST;
    device.sm_count = known ? CPU_COUNT(&cpus) : 1;
    std::strcpy(device.name, "the host");
    return device;
}

Status use_host(Handle& handle)
{
    handle.device = host_device();
    find_loaded_driver();
    return ok;
}

Status find_gpu(Handle& handle, bool automatic, int ordinal)
{
    void* context = nullptr;
    if (automatic) {
        if (Status status = driver::current_context(&context, &ordinal); status != ok)
            return status;
    }
    if (!context) {
        if (Status status = driver::retain_primary(ordinal, handle.primary); status != ok)
            return status;
        context = handle.primary.context;
    }
    handle.context = context;
    const Status status = driver::describe(ordinal, handle.device);
    handle.all_sm_count = handle.device.sm_count;
    return status;
}

// A handle may have been created in a green context.
Status adopt_default_stream(Handle& handle)
{
    driver::StreamOwner owner{};
    const Status status = handle.context ? driver::find_owner(nullptr, owner) : ok;
    if (status == ok && handle.context)
        adopt(handle, owner);
    return status;
}

// The device that was asked for, or for an automatic handle the first of: current context, device 0,
// host.
Status find_device(Handle& handle, int ordinal)
{
    const bool automatic = ordinal == HGEMM_DEVICE_CURRENT;
    const bool host_forced = !std::strcmp(handle.options.backend, "host");
    const char* reason = nullptr;
    if (ordinal == HGEMM_DEVICE_HOST || (automatic && host_forced))
        return use_host(handle);
    int devices = 0;
    if (const Status status = driver::count_devices(&devices, &reason); status != ok)
        return status;
    if (devices > 0) {
        if (ordinal >= devices) {
            fail_argument(2, "device", "is %d, must be below the number of devices, %d, or be %d", ordinal,
                          devices, HGEMM_DEVICE_HOST);
            return HGEMM_STATUS_NO_DEVICE;
        }
        return find_gpu(handle, automatic, automatic ? 0 : ordinal);
    }
    if (!automatic) {
        fail_argument(2, "device", "is %d, but there is no such device: %s", ordinal, reason);
        return HGEMM_STATUS_NO_DEVICE;
    }
    if (*handle.options.backend)
        return fail(HGEMM_STATUS_NO_DEVICE, "backend '%s' (HGEMM_BACKEND) needs a GPU: %s",
                    handle.options.backend, reason);
    const Status status = driver::check_unserved();
    return status == ok ? use_host(handle) : status;
}

size_t default_workspace(const Handle& handle)
{
    size_t bytes = 0;
    for (const Backend* backend : handle.served_by())
        bytes = std::max(bytes, backend->default_workspace(handle.device));
    return bytes;
}

Status allocate_workspace(Handle& handle, size_t bytes)
{
    bytes = (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    if (bytes == 0)
        return ok;
    if (handle.context) {
        // The counters lie behind the workspace.
        const size_t words = counter_words(handle.device, handle.served_by(), bytes);
        const size_t counter_bytes = words * sizeof(uint32_t);
        Status status = driver::allocate(bytes + counter_bytes, &handle.own.ptr);
        if (status != ok)
            return status;
        if (words > 0) {
            handle.own.counters = reinterpret_cast<uint32_t*>(static_cast<char*>(handle.own.ptr) + bytes);
            handle.own.counter_words = words;
            status = driver::clear(handle.own.counters, counter_bytes);
        }
        if (status != ok)
            return status;
    } else {
        handle.own.ptr = std::aligned_alloc(workspace_alignment, bytes);
        if (!handle.own.ptr)
            return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for a workspace of %zu bytes", bytes);
    }
    handle.own.bytes = bytes;
    return ok;
}

// Gives back all that the handle holds.
void release(Handle& handle)
{
    {
        const driver::Scope scope(handle.context);
        for (int i = 0; i < handle.backend_count; ++i)
            if (handle.states[i])
                handle.backends[i]->close(handle.states[i]);
        handle.lent.release();
        if (handle.context)
            driver::release(handle.own.ptr);
        else
            std::free(handle.own.ptr);
    }
    driver::release_primary(handle.primary);
    close_log(handle.log);
}

// The arguments of a creating function. Without a size the backends choose it.
struct Wanted {
    int device;
    std::optional<size_t> workspace;
};

Status open_backends(Handle& handle)
{
    return run_side_by_side(handle.backend_count, [&](int i) {
        const driver::Scope scope(handle.context);
        const Status status = scope.status();
        return status == ok ? handle.backends[i]->open(handle.device, &handle.states[i]) : status;
    });
}

// What is forced decides alone; the host has one kernel for a problem.
void open_tuning(Handle& handle)
{
    if (!handle.context || handle.options.is_forced())
        return;
    handle.tuning_path = tuning_path(handle.device, handle.all_sm_count);
    handle.tuning = Tuning::open(handle.device, handle.all_sm_count, handle.log);
    if (handle.tuning)
        handle.device.calibration = handle.tuning->calibration();
}

void log_creation(const Handle& handle)
{
    const Backend& backend = *handle.backends[0];
    handle.log.line("handle on %s, backend %s", handle.device.name, backend.name);
    if (const char* const remark = backend.remark ? backend.remark() : nullptr)
        handle.log.line("%s", remark);
}

Status create_handle(Handle& handle, const Wanted& wanted)
{
    handle.cache = std::make_unique<PlanCache>();
    Status status = open_log(handle.log);
    if (status == ok)
        status = read_options(handle.options);
    if (status == ok)
        status = check_names(handle.options);
    if (status == ok)
        status = find_device(handle, wanted.device);
    const driver::Scope scope(handle.context);
    if (status == ok)
        status = scope.status();
    if (status == ok)
        status = find_backends(handle.device, handle.options, handle.backends, handle.backend_count);
    if (status == ok)
        status = open_backends(handle);
    if (status == ok)
        status = allocate_workspace(handle, wanted.workspace.value_or(default_workspace(handle)));
    if (status == ok)
        status = adopt_default_stream(handle);
    if (status == ok)
        open_tuning(handle);
    if (status == ok && handle.log.wants(LogLevel::Plan))
        log_creation(handle);
    return status;
}

void fail_creation(Handle& handle, Status status)
{
    if (handle.log.wants(LogLevel::Error))
        handle.log.line("error %s: %s", hgemm_status_string(status), hgemm_last_error());
    release(handle);
}

Status create(const char* function, hgemm_handle_t* out, const Wanted& wanted) noexcept
{
    const Call call(function);
    if (!out)
        return fail_argument(1, "handle", "is NULL, must point to an hgemm_handle_t");
    *out = nullptr;
    if (wanted.device < HGEMM_DEVICE_CURRENT)
        return fail_argument(2, "device", "is %d, must be a device number, %d or %d", wanted.device,
                             HGEMM_DEVICE_HOST, HGEMM_DEVICE_CURRENT);
    if (wanted.workspace.value_or(0) > max_workspace_bytes)
        return fail_argument(3, "workspace_bytes", "is %zu, must be at most 2^46", *wanted.workspace);
    const uintptr_t slot = handles.take();
    if (slot == 0)
        return fail(HGEMM_STATUS_ALLOC_FAILED, "there are %d handles, the most that a process may have",
                    1 << index_bits);
    std::unique_ptr<Handle> created;
    Status status;
    try {
        created = std::make_unique<Handle>();
        status = create_handle(*created, wanted);
    } catch (...) {
        status = fail(HGEMM_STATUS_ALLOC_FAILED, "out of host memory or threads");
    }
    if (status != ok) {
        if (created)
            fail_creation(*created, status);
        handles.give_back(slot);
        return status;
    }
    *out = reinterpret_cast<hgemm_handle_t>(handles.open(slot, created.release()));
    return ok;
}

}  // namespace

// Kernels on a stream of a green context run on its SMs alone. Plans count those, since tiles, slices and
// grids are chosen for the CTAs that run at the same time. No CTA waits for one that may not have started.
void adopt(Handle& handle, const driver::StreamOwner& owner)
{
    const int sm_count =
        owner.sm_count > 0 ? std::min(owner.sm_count, handle.all_sm_count) : handle.all_sm_count;
    if (sm_count == handle.device.sm_count)
        return;
    handle.device.sm_count = sm_count;
    handle.cache->clear();
}

Handle* find_handle(hgemm_handle_t handle) { return handles.find(reinterpret_cast<uintptr_t>(handle)); }

Status fail_handle(hgemm_handle_t handle)
{
    fail_argument(1, "handle",
                  handle ? "was destroyed or never created, must come from hgemm_create"
                         : "is NULL, must come from hgemm_create");
    return HGEMM_STATUS_NOT_INITIALIZED;
}

}  // namespace hg

using namespace hg;

extern "C" hgemm_status_t hgemm_create(hgemm_handle_t* handle)
{
    return create("hgemm_create", handle, {HGEMM_DEVICE_CURRENT, {}});
}

extern "C" hgemm_status_t hgemm_create_on(hgemm_handle_t* handle, int device)
{
    return create("hgemm_create_on", handle, {device, {}});
}

extern "C" hgemm_status_t hgemm_create_sized(hgemm_handle_t* handle, int device, size_t workspace_bytes)
{
    return create("hgemm_create_sized", handle, {device, workspace_bytes});
}

extern "C" hgemm_status_t hgemm_destroy(hgemm_handle_t handle)
{
    if (!handle)
        return ok;
    const Call call("hgemm_destroy");
    const auto key = reinterpret_cast<uintptr_t>(handle);
    const std::unique_ptr<Handle> body(handles.close(key));
    if (!body)
        return fail_handle(handle);
    release(*body);
    handles.give_back(key);
    return ok;
}
