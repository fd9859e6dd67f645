// Handle: what hgemm_create() learns and what the setters change.
#pragma once

#include "src/base/log.hpp"
#include "src/base/status.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/backend.hpp"
#include "src/run/plan_cache.hpp"
#include "src/run/workspaces.hpp"
#include "src/tuning/tuning.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hg {

// The texts of the last hgemm_tune_report_t.
struct TuneTexts {
    std::string built_in, before, now, wrong_kernels, path;
};

constexpr size_t workspace_alignment = 256;
constexpr size_t max_workspace_bytes = size_t{1} << 46;

struct Handle {
    Device device;     // device.sm_count: the SMs that kernels on the stream may use
    int all_sm_count;  // SMs of the whole device
    Options options;
    Log log;
    void* context;            // the CUcontext; null on the host
    driver::Primary primary;  // set if `context` is a primary context that the handle retained
    hgemm_stream_t stream;
    std::unique_ptr<PlanCache> cache;
    std::unique_ptr<Tuning> tuning;  // null: there is none, or what it chooses is forced
    std::string tuning_path;         // the file that the handle read, or would have read; "" if none
    TuneTexts tune_texts;
    Workspace own, user;  // user.ptr null: own is used, or lent ones
    size_t reserved;      // the first bytes of the workspace, which composites hold while they run
    // Set by hgemm_set_workspace_per_stream(); see lending.hpp.
    size_t lent_limit;     // of bytes; 0: the handle's own workspace is used
    size_t lent_counters;  // words that come with so many bytes
    Workspaces lent;
    driver::Place place;  // of the call that runs, or ran last

    // Backends that serve the device, the preferred one first, and their state.
    const Backend* backends[max_backends];
    void* states[max_backends];
    int backend_count;

    // Does the call use a lent workspace? A graph may run beside what else uses the caller's.
    bool borrows() const { return lent_limit > 0 && (!user.ptr || place.graph); }
    // What plans may count on. The address of a lent one is null until a plan needs it.
    Workspace workspace() const
    {
        Workspace left = borrows() ? borrowed() : user.ptr ? user : own;
        if (reserved > 0) {
            left.ptr = left.ptr ? static_cast<char*>(left.ptr) + reserved : nullptr;
            left.bytes -= std::min(reserved, left.bytes);
        }
        return left;
    }
    Workspace borrowed() const;
    int sm_count() const { return options.sm_count(device); }
    // The options of one product, with the workspace that the handle has now.
    Options planning_options() const
    {
        Options now = options;
        if (now.mode == Mode::Tree)
            now.mode = Mode::BatchInvariant;
        now.workspace = workspace().bytes;
        now.counters = workspace().counter_words;
        return now;
    }
    std::span<const Backend* const> served_by() const
    {
        return {backends, static_cast<size_t>(backend_count)};
    }
};

// The live handle behind a public one, else null.
Handle* find_handle(hgemm_handle_t handle);
Status fail_handle(hgemm_handle_t handle);  // for when that is null
// Makes the handle plan for the SMs of the context (perhaps a green one) that owns its stream.
void adopt(Handle& handle, const driver::StreamOwner& owner);

// Runs the body of a public call on a live handle: no exception escapes, and failures are logged if asked
// for.
template <typename Body>
Status with_handle(const char* function, hgemm_handle_t public_handle, Body body) noexcept;

template <typename Body>
Status with_handle(const char* function, hgemm_handle_t public_handle, Body body) noexcept
{
    const Call call(function);
    Handle* handle = find_handle(public_handle);
    if (!handle)
        return fail_handle(public_handle);
    Status status = HGEMM_STATUS_INTERNAL;
    try {
        status = body(*handle);
    } catch (...) {
        status = fail(HGEMM_STATUS_ALLOC_FAILED, "out of host memory");
    }
    if (status != ok && handle->log.wants(LogLevel::Error))
        handle->log.line("error %s: %s", hgemm_status_string(status), hgemm_last_error());
    return status;
}

}  // namespace hg
