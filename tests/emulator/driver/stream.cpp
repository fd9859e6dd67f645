// Streams, and host functions on them.
#include "driver/call.hpp"
#include "driver/capture.hpp"

using namespace emu::driver;

namespace emu::driver {

CUstream_st& get_stream(CUstream handle)
{
    if (handle == nullptr || handle == CU_STREAM_LEGACY)
        return current_context().default_stream;
    if (handle == CU_STREAM_PER_THREAD)
        return current_context().thread_stream;
    return *driver().streams.get(handle);
}

void create_stream(CUstream* stream, unsigned flags, int priority, CUctx_st& owner)
{
    require(stream && !(flags & ~unsigned{CU_STREAM_NON_BLOCKING}), CUDA_ERROR_INVALID_VALUE);
    Driver& d = driver();
    CUctx_st& context = owner.green ? *owner.green->primary : owner;
    *stream = d.streams.add(std::make_shared<CUstream_st>(
        CUstream_st{&context, flags, std::clamp(priority, -5, 0), d.next_id++, nullptr, {}}));
    (*stream)->green = owner.green;
}

CUcontext context_of(CUstream handle)
{
    const CUstream_st& stream = get_usable_stream(handle);
    const bool special = !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    return special ? current_context_or_null() : stream.green ? stream.green->converted : stream.context;
}

}  // namespace emu::driver

CUresult cuStreamCreate(CUstream* stream, unsigned flags)
{
    return call("cuStreamCreate",
                [&](CUctx_st&) { create_stream(stream, flags, 0, *current_context_or_null()); });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority)
{
    return call("cuStreamCreateWithPriority",
                [&](CUctx_st&) { create_stream(stream, flags, priority, *current_context_or_null()); });
}

CUresult cuStreamDestroy(CUstream handle)
{
    return call("cuStreamDestroy", [&](CUctx_st&) {
        const auto stream = driver().streams.get(handle);
        require(!stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        driver().streams.remove(handle);
    });
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return call("cuStreamSynchronize", [&](CUctx_st&) {
        forbid_capturing(get_stream(stream));
        finish(get_stream(stream));
    });
}

// Who asks and asks again sees the work end between two questions.
CUresult cuStreamQuery(CUstream handle)
{
    return call("cuStreamQuery", [&](CUctx_st&) {
        CUstream_st& stream = get_stream(handle);
        forbid_capturing(stream);
        const bool done = is_done(stream);
        finish(stream);
        require(done, CUDA_ERROR_NOT_READY);
    });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context)
{
    return call("cuStreamGetCtx", [&](CUctx_st&) { out(context) = context_of(stream); });
}

extern "C" CUresult cuStreamGetDevice(CUstream stream, CUdevice* device)
{
    return call("cuStreamGetDevice",
                [&](CUctx_st&) { out(device) = get_usable_stream(stream).context->device->ordinal; });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags)
{
    return call("cuStreamGetFlags", [&](CUctx_st&) {
        CUstream_st& asked = get_stream(stream);
        forbid_capturing(asked);  // as an H200 does, though it only asks
        out(flags) = asked.flags;
    });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority)
{
    return call("cuStreamGetPriority",
                [&](CUctx_st&) { out(priority) = get_usable_stream(stream).priority; });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id)
{
    return call("cuStreamGetId", [&](CUctx_st&) {
        CUstream_st& asked = get_stream(stream);
        forbid_capturing(asked);
        out(id) = asked.id;
    });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent waited, unsigned flags)
{
    return call("cuStreamWaitEvent", [&](CUctx_st&) {
        require(flags <= CU_EVENT_WAIT_EXTERNAL, CUDA_ERROR_INVALID_VALUE);
        CUstream_st& stream = get_usable_stream(handle);
        const auto event = driver().events.get(waited);
        if (flags == CU_EVENT_WAIT_EXTERNAL) {
            require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
            add_node(stream, {CU_GRAPH_NODE_TYPE_WAIT_EVENT, [] {}});
        } else if (event->capture || (stream.capture && event->recorded)) {
            join_capture(stream, *event);
        } else if (event->item) {
            stream.waits.push_back(event->item);
        }
    });
}

// Called with the lock held by this thread, which may take it again.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data)
{
    return call("cuLaunchHostFunc", [&](CUctx_st&) {
        require(function != nullptr, CUDA_ERROR_INVALID_VALUE);
        submit(stream, {CU_GRAPH_NODE_TYPE_HOST, [=] { function(data); }});
    });
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags)
{
    return call("cuStreamAddCallback", [&](CUctx_st&) {
        require(callback && flags == 0, CUDA_ERROR_INVALID_VALUE);
        require(!get_stream(stream).capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        submit(stream, {CU_GRAPH_NODE_TYPE_HOST, [=] { callback(stream, CUDA_SUCCESS, data); }});
    });
}
