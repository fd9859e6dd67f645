// Contexts: primary and created ones, and each thread's stack of current ones.
#include "driver/call.hpp"

using namespace emu::driver;

namespace {

// Without a destructor: the driver may be called from destructors of a thread's other objects.
struct Stack {
    CUcontext contexts[64];
    int depth;

    void push(CUcontext context)
    {
        require(depth < 64, CUDA_ERROR_OUT_OF_MEMORY);
        contexts[depth++] = context;
    }
    CUcontext top() const { return depth > 0 ? contexts[depth - 1] : nullptr; }
};
thread_local Stack stack{};

CUcontext new_context(Device& device, unsigned flags, bool primary)
{
    Driver& d = driver();
    CUcontext context = d.contexts.emplace_back(std::make_unique<CUctx_st>()).get();
    context->device = &device;
    context->flags = flags;
    context->primary = primary;
    context->id = d.next_id++;
    context->default_stream = {context, CU_STREAM_DEFAULT, 0, d.next_id++, nullptr, {}};
    context->thread_stream = {context, CU_STREAM_DEFAULT, 0, d.next_id++, nullptr, {}};
    return context;
}

CUcontext top() { return stack.top(); }

void set_current(CUcontext context)
{
    if (context)
        get_context(context);
    if (stack.depth > 0)
        --stack.depth;
    if (context)
        stack.push(context);
}

CUresult create(CUcontext* context, unsigned flags, CUdevice device)
{
    return call("cuCtxCreate", Needs::Driver, [&] {
        Device& on = get_device(device);
        out(context) = new_context(on, flags, false);
        stack.push(*context);
    });
}

// Ended primary contexts stay as tombstones; the next retain makes a new one.
CUctx_st& primary_of(Device& device)
{
    if (!device.primary || !device.primary->live)
        device.primary = new_context(device, device.primary_flags, true);
    return *device.primary;
}

// Nobody is left to be told of a fault, but it is printed.
void finish_or_drop(CUctx_st& context)
{
    try {
        if (context.lost == CUDA_SUCCESS)
            finish_all(context);
    } catch (const Failure&) {
    }
    context.pending.clear();
}

// Kernel handles outlive the context and refer to the parsed module, so it stays; its globals do not serve
// another context.
void disown(Loaded::Instance& instance)
{
    instance.owner = nullptr;
    if (!instance.module->module().globals.empty())
        instance.device = nullptr;
}

}  // namespace

namespace emu::driver {

CUcontext current_context_or_null() { return top(); }

CUctx_st& get_context(CUcontext handle)
{
    require(handle != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    for (const auto& context : driver().contexts)
        if (context.get() == handle) {
            require(context->live, CUDA_ERROR_CONTEXT_IS_DESTROYED);
            return *context;
        }
    throw Failure{CUDA_ERROR_INVALID_CONTEXT, ""};
}

CUctx_st& current_context()
{
    CUctx_st& current = get_context(top());
    CUctx_st& context = current.green ? *current.green->primary : current;
    require(context.lost == CUDA_SUCCESS, context.lost);
    return context;
}

void end_context(CUctx_st& context)
{
    Driver& d = driver();
    finish_or_drop(context);
    context.live = false;
    const auto owned = [&](const auto& object) { return object.context == &context; };
    d.streams.remove_if(owned);
    d.events.remove_if(owned);
    d.executables.remove_if(owned);
    d.functions.remove_if([&](const Function& function) { return owned(*function.loaded); });
    d.modules.remove_if(owned);
    d.libraries.for_each([&](Loaded& library) {
        for (Loaded::Instance& instance : library.instances)
            if (instance.owner == &context)
                disown(instance);
    });
    std::vector<uint64_t> addresses;
    for (const auto& [address, allocation] : d.allocations)
        if (allocation.context == &context && allocation.kind != MemoryKind::Mapped)
            addresses.push_back(address);
    for (const uint64_t address : addresses)
        release_memory(address);
}

CUctx_st& retain_primary(Device& device)
{
    CUctx_st& primary = primary_of(device);
    ++primary.retained;
    return primary;
}

void release_primary(Device& device)
{
    CUcontext primary = device.primary;
    require(primary && primary->live && primary->retained > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--primary->retained == 0)
        end_context(*primary);
}

size_t live_contexts()
{
    size_t count = 0;
    for (const auto& context : driver().contexts)
        if (context->live && !context->green)
            count += context->primary ? context->retained : 1;
    return count;
}

}  // namespace emu::driver

// ---- Primary contexts -------------------------------------------------------------------------------
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device)
{
    return call("cuDevicePrimaryCtxRetain", Needs::Driver, [&] {
        require(context != nullptr, CUDA_ERROR_INVALID_VALUE);
        *context = &retain_primary(get_device(device));
    });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return call("cuDevicePrimaryCtxRelease", Needs::Driver, [&] { release_primary(get_device(device)); });
}

// Those who retained it keep it, emptied and usable again.
CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return call("cuDevicePrimaryCtxReset", Needs::Driver, [&] {
        CUcontext primary = get_device(device).primary;
        if (!primary || !primary->live)
            return;
        end_context(*primary);
        primary->lost = CUDA_SUCCESS;
        primary->live = primary->retained > 0;
    });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active)
{
    return call("cuDevicePrimaryCtxGetState", Needs::Driver, [&] {
        const Device& d = get_device(device);
        out(flags) = d.primary_flags;
        out(active) = d.primary && d.primary->live;
    });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    return call("cuDevicePrimaryCtxSetFlags", Needs::Driver,
                [&] { get_device(device).primary_flags = flags; });
}

// ---- Created contexts -------------------------------------------------------------------------------
#undef cuCtxCreate
extern "C" CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device)
{
    return create(context, flags, device);
}

#if CUDA_VERSION >= 12050
extern "C" CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                                   CUdevice device)
{
    if (params && (params->execAffinityParams || params->cigParams))
        return call("cuCtxCreate", Needs::Driver, [] {
            throw Failure{CUDA_ERROR_NOT_SUPPORTED,
                          "execution affinity and graphics sharing are not emulated"};
        });
    return create(context, flags, device);
}
#endif

CUresult cuCtxDestroy(CUcontext context)
{
    return call("cuCtxDestroy", Needs::Driver, [&] {
        CUctx_st& ending = get_context(context);
        require(!ending.primary, CUDA_ERROR_INVALID_CONTEXT);
        end_context(ending);
        if (top() == context)
            --stack.depth;
    });
}

// ---- Current context --------------------------------------------------------------------------------
CUresult cuCtxGetCurrent(CUcontext* context)
{
    return call("cuCtxGetCurrent", Needs::Driver, [&] { out(context) = top(); });
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    return call("cuCtxSetCurrent", Needs::Driver, [&] { set_current(context); });
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    return call("cuCtxPushCurrent", Needs::Driver, [&] {
        get_context(context);
        stack.push(context);
    });
}

CUresult cuCtxPopCurrent(CUcontext* context)
{
    return call("cuCtxPopCurrent", Needs::Driver, [&] {
        require(stack.depth > 0, CUDA_ERROR_INVALID_CONTEXT);
        if (context)
            *context = top();
        --stack.depth;
    });
}

CUresult cuCtxGetDevice(CUdevice* device)
{
    return call("cuCtxGetDevice", Needs::Driver, [&] { out(device) = get_context(top()).device->ordinal; });
}

extern "C" CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context)
{
    return call("cuCtxGetDevice", Needs::Driver,
                [&] { out(device) = get_context(context ? context : top()).device->ordinal; });
}

CUresult cuCtxGetFlags(unsigned* flags)
{
    return call("cuCtxGetFlags", [&](CUctx_st& context) { out(flags) = context.flags; });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id)
{
    return call("cuCtxGetId", Needs::Driver, [&] { out(id) = get_context(context ? context : top()).id; });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version)
{
    return call("cuCtxGetApiVersion", Needs::Driver, [&] {
        get_context(context ? context : top());
        out(version) = 3020;
    });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest)
{
    return call("cuCtxGetStreamPriorityRange", [&](CUctx_st&) {
        if (least)
            *least = 0;
        if (greatest)
            *greatest = -5;
    });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit)
{
    return call("cuCtxGetLimit", [&](CUctx_st& context) {
        require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
        const auto found = context.limits.find(limit);
        out(value) = found == context.limits.end() ? 1024 : found->second;
    });
}

// Remembered, without effect: no emulated kernel has a stack, a heap or a print buffer to size.
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    return call("cuCtxSetLimit", [&](CUctx_st& context) {
        require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
        context.limits[limit] = value;
    });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache)
{
    return call("cuCtxSetCacheConfig", [](CUctx_st&) {});
}

CUresult cuCtxSynchronize()
{
    return call("cuCtxSynchronize", [](CUctx_st& context) {
        forbid_capture_in(context);
        finish_all(context);
    });
}
