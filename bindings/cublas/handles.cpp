#include "handles.hpp"

#include "driver.hpp"
#include "lazy.hpp"
#include "quietly.hpp"
#include "settings.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hg::shim {
namespace {

constexpr uintptr_t alignment = 256;
// The default size of cuBLAS's workspace on Hopper.
constexpr size_t own_workspace_bytes = size_t{32} << 20;
// A workspace of no bytes, with which libhgemm chooses kernels that need none.
const Workspace nothing{reinterpret_cast<void*>(alignment), 0};

// An hgemm handle and its settings.
struct Engine {
    void* context = nullptr;
    hgemm_handle_t handle = nullptr;  // null: could not be made
    void* stream = nullptr;
    Workspace workspace;  // ptr null: one for each stream, of the hgemm handle's
    int sm_count = 0;
    hgemm_mode_t mode = HGEMM_MODE_DEFAULT;
};

struct Entry {
    std::mutex mutex;
    Workspace workspace;
    std::vector<Engine> engines;
};

struct Entries {
    std::mutex mutex;
    std::unordered_map<void*, std::unique_ptr<Entry>> map;
};

constinit Lazy<Entries> entries;

// Changes when an entry is removed, so that threads do not use what they cached.
std::atomic<uint64_t> generation{1};

struct Remembered {
    void* handle;
    uint64_t generation;
    Entry* entry;
};
thread_local Remembered last{};

Entry& find_entry(void* handle)
{
    const uint64_t now = generation.load(std::memory_order_acquire);
    if (last.handle == handle && last.generation == now)
        return *last.entry;
    Entries& all = entries.get();
    const std::lock_guard lock(all.mutex);
    std::unique_ptr<Entry>& entry = all.map[handle];
    if (!entry)
        entry = std::make_unique<Entry>();
    last = {handle, now, entry.get()};
    return *entry;
}

// Null if the handle has no entry.
std::unique_ptr<Entry> take_out(void* handle)
{
    Entries& all = entries.get();
    const std::lock_guard lock(all.mutex);
    const auto place = all.map.find(handle);
    if (place == all.map.end())
        return nullptr;
    std::unique_ptr<Entry> entry = std::move(place->second);
    all.map.erase(place);
    generation.fetch_add(1, std::memory_order_release);
    return entry;
}

// Each stream has a workspace of its own, of that size at most, and so has each graph: the program may run
// it beside others, and when the handle is gone.
hgemm_status_t create(hgemm_handle_t& handle)
{
    hgemm_status_t status = hgemm_create_sized(&handle, HGEMM_DEVICE_CURRENT, 0);
    // A handle on the host would read the program's device pointers. This refuses there.
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_set_workspace_per_stream(handle, own_workspace_bytes);
    return status;
}

Engine make_engine(void* context)
{
    Engine engine;
    engine.context = context;
    if (create(engine.handle) != HGEMM_STATUS_SUCCESS) {
        if (logs(LogLevel::Summary))
            log_line("no handle of libhgemm: %s", hgemm_last_error());
        hgemm_destroy(engine.handle);
        engine.handle = nullptr;
    }
    return engine;
}

// The engine for the calling thread's context. A thread without a context, to which the real library would
// give one, gets the engine of the only context where the handle was used before; else null.
Engine* find_engine(Entry& entry)
{
    void* context = driver::current_context();
    if (!context)
        return entry.engines.size() == 1 ? &entry.engines[0] : nullptr;
    for (Engine& engine : entry.engines)
        if (engine.context == context)
            return &engine;
    return &entry.engines.emplace_back(make_engine(context));
}

// libhgemm demands 256-byte alignment, cuBLAS accepts any.
Workspace aligned(Workspace w)
{
    const uintptr_t begin = reinterpret_cast<uintptr_t>(w.ptr);
    const uintptr_t skipped = (alignment - begin % alignment) % alignment;
    if (w.bytes <= skipped)
        return nothing;
    return {reinterpret_cast<void*>(begin + skipped), w.bytes - skipped};
}

// That of the program is used but in captures, where libhgemm takes one of that size. In cuBLAS graphs of
// one handle share it, and give wrong results beside each other. In tree mode a product needs one, whatever
// the program has: libhgemm's own of the stream.
Workspace choose_workspace(const Place& place, const Workspace& of_handle)
{
    if (place.mode == HGEMM_MODE_TREE)
        return {};
    if (place.brings_workspace)
        return aligned(place.workspace);
    return of_handle.ptr ? aligned(of_handle) : Workspace{};
}

bool set_stream(Engine& engine, void* stream)
{
    if (engine.stream == stream)
        return true;
    if (hgemm_set_stream(engine.handle, static_cast<hgemm_stream_t>(stream)) != HGEMM_STATUS_SUCCESS)
        return false;
    engine.stream = stream;
    return true;
}

bool set_workspace(Engine& engine, const Workspace& w)
{
    if (engine.workspace.ptr == w.ptr && engine.workspace.bytes == w.bytes)
        return true;
    if (hgemm_set_workspace(engine.handle, w.ptr, w.bytes) != HGEMM_STATUS_SUCCESS)
        return false;
    engine.workspace = w;
    return true;
}

bool set_sm_count(Engine& engine, int count)
{
    if (engine.sm_count == count)
        return true;
    if (hgemm_set_sm_count(engine.handle, count) != HGEMM_STATUS_SUCCESS)
        return false;
    engine.sm_count = count;
    return true;
}

bool set_mode(Engine& engine, hgemm_mode_t mode)
{
    if (engine.mode == mode)
        return true;
    if (hgemm_set_mode(engine.handle, mode) != HGEMM_STATUS_SUCCESS)
        return false;
    engine.mode = mode;
    return true;
}

hgemm_status_t run(hgemm_handle_t handle, std::span<const hgemm_args_t> products)
{
    if (products.size() == 1)
        return hgemm_gemm_ex(handle, &products[0]);
    hgemm_grouped_args_t groups;
    hgemm_grouped_args_init(&groups, sizeof groups);
    groups.grouping = HGEMM_GROUPED_HOST;
    groups.group_count = std::ssize(products);
    groups.problems = products.data();
    return hgemm_grouped_ex(handle, &groups);
}

// libhgemm checks and plans all products before the first one runs. If it fails later, and a product that
// has run has added to its C, cuBLAS must not add to it again.
Reason why_not(hgemm_status_t status, std::span<const hgemm_args_t> products)
{
    const bool ran_none = products.size() == 1 || status == HGEMM_STATUS_INVALID_ARGUMENT ||
                          status == HGEMM_STATUS_NOT_SUPPORTED ||
                          status == HGEMM_STATUS_WORKSPACE_TOO_SMALL;
    const bool adds = std::ranges::any_of(products, [](const hgemm_args_t& g) { return g.beta != 0; });
    return !ran_none && adds ? Reason::Halfway : Reason::Refused;
}

}  // namespace

Reason multiply(void* handle, const Place& place, std::span<const hgemm_args_t> products)
{
    Entry& entry = find_entry(handle);
    const std::lock_guard lock(entry.mutex);
    Engine* const engine = find_engine(entry);
    if (!engine)
        return Reason::Context;
    if (!engine->handle)
        return Reason::NoHandle;
    const Workspace workspace = choose_workspace(place, entry.workspace);
    Reason reason = Reason::Refused;
    if (set_stream(*engine, place.stream) && set_workspace(*engine, workspace) &&
        set_sm_count(*engine, place.sm_count) && set_mode(*engine, place.mode)) {
        const hgemm_status_t status = run(engine->handle, products);
        reason = status == HGEMM_STATUS_SUCCESS ? Reason::None : why_not(status, products);
    }
    if (reason != Reason::None && logs(LogLevel::Calls))
        log_line("declined: %s", hgemm_last_error());
    return reason;
}

// If there is no memory for an entry, the workspace is not noted, and GEMMs go to the real library.
void set_workspace(void* handle, Workspace workspace)
{
    quietly([&] {
        Entry& entry = find_entry(handle);
        const std::lock_guard lock(entry.mutex);
        entry.workspace = workspace.ptr ? workspace : nothing;
    });
}

void take_workspace(void* handle)
{
    quietly([&] {
        Entry& entry = find_entry(handle);
        const std::lock_guard lock(entry.mutex);
        entry.workspace = {};
    });
}

// Removed before it is destroyed: after that another thread may get a handle with the same address.
int forget(void* handle, const std::function<int()>& destroy)
{
    std::unique_ptr<Entry> gone;
    quietly([&] { gone = take_out(handle); });
    const int status = destroy();
    if (gone)
        for (const Engine& engine : gone->engines)
            hgemm_destroy(engine.handle);
    return status;
}

void leave_handles_behind()
{
    entries.leave_behind();
    generation.fetch_add(1, std::memory_order_release);
}

}  // namespace hg::shim
