// Events: the time at which a stream had come so far, and a point that others can wait for.
#include "driver/call.hpp"
#include "driver/capture.hpp"

using namespace emu::driver;

namespace {

void record(CUevent handle, CUstream on, unsigned flags)
{
    require(flags <= CU_EVENT_RECORD_EXTERNAL, CUDA_ERROR_INVALID_VALUE);
    const auto event = driver().events.get(handle);
    CUstream_st& stream = get_stream(on);
    require(event->context == stream.context, CUDA_ERROR_INVALID_HANDLE);
    const auto happen = [event] { event->time = std::chrono::steady_clock::now(); };
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
        require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
        add_node(stream, {CU_GRAPH_NODE_TYPE_EVENT_RECORD, [event, happen] {
                              event->recorded = true;
                              happen();
                          }});
    } else if (stream.capture) {
        require(!stream.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        event->capture = stream.capture;
        event->last = stream.last;
    } else {
        event->item = submit(on, {CU_GRAPH_NODE_TYPE_EVENT_RECORD, happen});
        event->recorded = true;
        event->capture = nullptr;
        event->last.clear();
    }
}

CUevent_st& outside_capture(CUevent handle)
{
    CUevent_st& event = *driver().events.get(handle);
    require(!event.capture, CUDA_ERROR_CAPTURED_EVENT);
    return event;
}

bool has_happened(const CUevent_st& event) { return !event.item || event.item->done; }

CUresult elapsed(float* milliseconds, CUevent first, CUevent second)
{
    return call("cuEventElapsedTime", [&](CUctx_st&) {
        const CUevent_st &from = outside_capture(first), &to = outside_capture(second);
        require(from.recorded && to.recorded, CUDA_ERROR_INVALID_HANDLE);
        require(!((from.flags | to.flags) & CU_EVENT_DISABLE_TIMING), CUDA_ERROR_INVALID_HANDLE);
        require(has_happened(from) && has_happened(to), CUDA_ERROR_NOT_READY);
        out(milliseconds) = std::chrono::duration<float, std::milli>(to.time - from.time).count();
    });
}

}  // namespace

CUresult cuEventCreate(CUevent* event, unsigned flags)
{
    return call("cuEventCreate", [&](CUctx_st& context) {
        constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
        require(event && !(flags & ~(known | CU_EVENT_INTERPROCESS)), CUDA_ERROR_INVALID_VALUE);
        require(!(flags & CU_EVENT_INTERPROCESS), CUDA_ERROR_NOT_SUPPORTED);
        *event = driver().events.add(
            std::make_shared<CUevent_st>(CUevent_st{&context, flags, false, nullptr, {}, nullptr, {}}));
    });
}

CUresult cuEventDestroy(CUevent event)
{
    return call("cuEventDestroy", [&](CUctx_st&) { driver().events.remove(event); });
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return call("cuEventRecord", [&](CUctx_st&) { record(event, stream, 0); });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    return call("cuEventRecordWithFlags", [&](CUctx_st&) { record(event, stream, flags); });
}

CUresult cuEventSynchronize(CUevent event)
{
    return call("cuEventSynchronize", [&](CUctx_st&) {
        const CUevent_st& waited = outside_capture(event);
        forbid_in_capture();
        finish(waited.item);
    });
}

CUresult cuEventQuery(CUevent event)
{
    return call("cuEventQuery", [&](CUctx_st&) {
        const CUevent_st& asked = outside_capture(event);
        forbid_in_capture();
        const bool done = has_happened(asked);
        finish(asked.item);
        require(done, CUDA_ERROR_NOT_READY);
    });
}

// Two versions with one meaning; cuda.h declares one of them.
#undef cuEventElapsedTime
extern "C" CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent second)
{
    return elapsed(milliseconds, first, second);
}

extern "C" CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first, CUevent second)
{
    return elapsed(milliseconds, first, second);
}
