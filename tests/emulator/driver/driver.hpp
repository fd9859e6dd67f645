// The state of the emulated CUDA driver: devices, contexts, streams, graphs, modules and the memory they
// own. One mutex guards all of it; every entry point takes it in call() (call.hpp).
//
// Work that is put on a stream runs when somebody waits for it, in the thread that waits; a capturing
// stream keeps it in a graph instead.
#pragma once

#include "driver/faults.hpp"
#include "emulator.hpp"

#include <cuda.h>

#include <chrono>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>

struct CUgreenCtx_st;
struct CUdevResourceDesc_st;

namespace emu::driver {

// What an entry point answers instead of CUDA_SUCCESS. A text goes to stderr: for what the caller cannot
// see from the number.
struct Failure {
    CUresult result;
    std::string text;
};

inline void require(bool condition, CUresult otherwise)
{
    if (!condition)
        throw Failure{otherwise, ""};
}

// Objects behind handles; a handle that is not in here was never created or has been destroyed.
template <typename T>
class Registry {
public:
    T* add(std::shared_ptr<T> object)
    {
        T* handle = object.get();
        objects_[handle] = std::move(object);
        return handle;
    }
    std::shared_ptr<T> find(const void* handle) const
    {
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    std::shared_ptr<T> get(const void* handle) const
    {
        std::shared_ptr<T> object = find(handle);
        require(object != nullptr, CUDA_ERROR_INVALID_HANDLE);
        return object;
    }
    void remove(const void* handle) { require(objects_.erase(handle) == 1, CUDA_ERROR_INVALID_HANDLE); }
    template <typename Condition>
    void remove_if(Condition condition)
    {
        std::erase_if(objects_, [&](const auto& entry) { return condition(*entry.second); });
    }
    template <typename Visit>
    void for_each(Visit visit) const
    {
        for (const auto& [handle, object] : objects_)
            visit(*object);
    }
    size_t size() const { return objects_.size(); }

private:
    std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

struct Device {
    Device(int ordinal, const Config& config);
    int ordinal;
    Machine machine;
    std::shared_ptr<Multiprocessors> multiprocessors;
    CUcontext primary = nullptr;
    unsigned primary_flags = 0;
    size_t reports_printed = 0;
    ReportCounts reports_seen{};  // by class, as often as they were met
};

// A library or a module: what the PTX chosen from an image became on each device.
struct Loaded {
    struct Instance {
        Device* device;   // null: its context has ended
        CUcontext owner;  // whose globals these are; null until a context asks
        std::shared_ptr<LoadedModule> module;
    };
    CUcontext context = nullptr;  // of a module; null for a library
    std::vector<Instance> instances;

    // Each context has globals of its own.
    LoadedModule& in(CUcontext context);
};

// A module without globals has no state: kept, and shared by all that load the same text.
struct Parsed {
    Device* device;
    std::shared_ptr<LoadedModule> module;
};

// A CUfunction and a CUkernel alike.
struct Function {
    std::shared_ptr<Loaded> loaded;
    const ptx::Kernel* kernel = nullptr;
    int max_dynamic_shared = 0, carveout = -1, cluster_policy = 0;
    int cluster[3] = {};  // required by .reqnctapercluster or by attribute
    bool non_portable_cluster = false;

    const Program& program(CUcontext context) const;
};

enum class MemoryKind { Device, Managed, Host, Registered, Mapped };
struct Allocation {
    MemoryKind kind;
    size_t bytes;
    CUcontext context;
    Device* device;
    unsigned flags;
    uint64_t id;
};

struct Driver {
    Config config;
    bool initialised = false;
    std::vector<std::unique_ptr<Device>> devices;
    // Also those that have ended: a context's address is not used twice, so old handles are noticed.
    std::vector<std::unique_ptr<CUctx_st>> contexts;
    std::map<uint64_t, Allocation> allocations;  // by address
    Registry<CUstream_st> streams;
    Registry<CUgreenCtx_st> greens;
    Registry<CUdevResourceDesc_st> descriptions;
    Registry<CUevent_st> events;
    Registry<CUgraph_st> graphs;
    Registry<CUgraphExec_st> executables;
    // Those that somebody has references to.
    std::unordered_map<const void*, std::weak_ptr<CUuserObject_st>> user_objects;
    Registry<Loaded> libraries, modules;
    Registry<Function> functions;
    std::vector<Parsed> parsed;
    Faults faults;
    std::string fault_texts;                // of launches that failed, for emu_reports()
    std::set<std::string> kernels_started;  // their names
    bool version_told = false;              // that a module's PTX is newer than what is known
    uint64_t next_id = 1;
    uint64_t longest_turn = 1;  // of a kernel, where they take turns
};

Driver& driver();

// The context of the calling thread, or the primary one behind a green context; throws if there is none, it
// has ended or it is lost.
CUctx_st& current_context();
CUctx_st& get_context(CUcontext handle);
CUctx_st& retain_primary(Device& device);
void release_primary(Device& device);
CUcontext current_context_or_null();
void end_context(CUctx_st& context);  // frees what it owns
size_t live_contexts();               // created ones and retains of primary ones
Device& get_device(CUdevice device);
std::shared_ptr<Multiprocessors> make_multiprocessors(const Config& config, int count);

// The memory around an address: an allocation, or a variable of a module.
struct Found {
    uint64_t base;
    Allocation allocation;
    uint64_t end() const { return base + allocation.bytes; }
};
std::optional<Found> find_memory(uint64_t address);
void release_memory(uint64_t base);
void* allocate_memory(CUctx_st& context, size_t bytes, MemoryKind kind, unsigned flags);

using Nodes = std::vector<CUgraphNode>;
// With the number of references.
using UserObjects = std::map<std::shared_ptr<CUuserObject_st>, uint64_t>;
struct Capture {
    std::shared_ptr<CUgraph_st> graph;
    CUstream_st* origin;
    CUstreamCaptureMode mode;
    std::thread::id thread;
    bool invalid = false, ended = false;
    uint64_t id;
};

// ---- Work -------------------------------------------------------------------------------------------
class KernelRun;

// One of both functions; they throw Failure.
struct Work {
    CUgraphNodeType type;
    std::function<void()> run;
    std::function<std::shared_ptr<KernelRun>()> begin = {};  // of a kernel
};
void run_alone(const Work& work);

// Work that a stream has still to do, or has done.
struct Item {
    uint64_t number;
    CUcontext context;
    bool blocking;  // not on a stream made with CU_STREAM_NON_BLOCKING
    bool done = false;
    std::vector<std::shared_ptr<Item>> after;
    Work work;
    // Where kernels take turns:
    std::shared_ptr<KernelRun> kernel;  // once it has begun
    bool stuck = false;                 // until something else has made progress
};

CUstream_st& get_stream(CUstream handle);
// `owner`: the current context, or that of a green context.
void create_stream(CUstream* stream, unsigned flags, int priority, CUctx_st& owner);
// As cuStreamGetCtx() tells it: a green context has one of its own.
CUcontext context_of(CUstream handle);
// Null if the stream is capturing: then the work is part of the graph.
std::shared_ptr<Item> submit(CUstream handle, Work work);
void submit_graph(CUstream handle, const std::shared_ptr<CUgraphExec_st>& executable);
void finish(const std::shared_ptr<Item>& item);  // null: nothing to do
void finish(CUstream_st& stream);
void finish_all(CUctx_st& context);
void finish_everything();  // of all contexts
bool is_done(const CUstream_st& stream);
// For calls that a capture in progress forbids: they make it invalid and fail.
void forbid_in_capture();
// For calls that wait for a stream.
void forbid_capturing(CUstream_st& stream);
// For what concerns the whole context: it fails while any of its streams captures.
void forbid_capture_in(CUctx_st& context);

}  // namespace emu::driver

struct CUgraphNode_st {
    emu::driver::Work work;
    emu::driver::Nodes dependencies;
};

// Its destructor hands `destroy` to the thread that runs such functions.
struct CUuserObject_st {
    CUuserObject_st(void* data, CUhostFn destroy, uint64_t owned)
        : data(data), destroy(destroy), owned(owned)
    {
    }
    ~CUuserObject_st();
    CUuserObject_st(const CUuserObject_st&) = delete;
    CUuserObject_st& operator=(const CUuserObject_st&) = delete;

    void* data;
    CUhostFn destroy;
    uint64_t owned;                         // references of the program
    std::shared_ptr<CUuserObject_st> self;  // while there are any
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in an order that the dependencies allow
    emu::driver::UserObjects objects = {};
};

struct CUgraphExec_st {
    CUcontext context;
    unsigned long long flags;
    struct Node {
        emu::driver::Work work;
        std::vector<size_t> after;  // earlier nodes
    };
    std::vector<Node> nodes;
    emu::driver::UserObjects objects;
    std::weak_ptr<emu::driver::Item> last_launch = {};  // launches of one do not overlap
};

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id;
    std::shared_ptr<emu::driver::Capture> capture;
    emu::driver::Nodes last;  // what the next captured node depends on
    std::shared_ptr<emu::driver::Item> last_item = nullptr;
    std::vector<std::shared_ptr<emu::driver::Item>> waits = {};  // events that the next item comes after
    CUgreenCtx_st* green = nullptr;
};

struct CUdevResourceDesc_st {
    emu::driver::Device* device = nullptr;
    unsigned sm_count = 0;
};

struct CUgreenCtx_st {
    CUcontext primary, converted;
    unsigned sm_count;
    std::shared_ptr<emu::Multiprocessors> multiprocessors;
};

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    bool recorded = false;
    std::shared_ptr<emu::driver::Item> item;  // that records it
    std::chrono::steady_clock::time_point time;
    std::shared_ptr<emu::driver::Capture> capture;  // recorded in one: stands for `last`
    emu::driver::Nodes last;
};

struct CUctx_st {
    emu::driver::Device* device;
    unsigned flags;
    bool primary;
    bool live = true;
    unsigned retained = 0;         // of a primary one
    CUresult lost = CUDA_SUCCESS;  // what every call answers after a fault
    uint64_t id;
    CUstream_st default_stream, thread_stream;
    std::map<uint64_t, std::shared_ptr<emu::driver::Item>> pending;  // by number: as they were submitted
    std::map<int, size_t> limits;
    CUgreenCtx_st* green = nullptr;  // whose CUcontext it is: nothing else of it is used
};
