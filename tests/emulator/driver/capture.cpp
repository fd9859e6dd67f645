// Stream capture: what is put on a capturing stream becomes a graph. Other streams join by waiting for an
// event of the capture and must be waited for before it ends.
#include "driver/capture.hpp"

#include "driver/call.hpp"

#include <set>

namespace emu::driver {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

namespace {

void for_each_capturing(const std::function<void(CUstream_st&)>& visit)
{
    for (const auto& context : driver().contexts)
        if (context->thread_stream.capture)
            visit(context->thread_stream);
    driver().streams.for_each([&](CUstream_st& stream) {
        if (stream.capture)
            visit(stream);
    });
}

// May a capture forbid the calling thread the calls that are unsafe during one?
bool forbids(const Capture& capture)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    const bool own = capture.thread == std::this_thread::get_id();
    const bool global =
        thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    return own || global;
}

// Captures of blocking streams, if this is their context's default stream: it waits for all blocking
// streams, and a capture cannot be waited for.
std::vector<std::shared_ptr<Capture>> in_the_way(const CUstream_st& stream)
{
    std::vector<std::shared_ptr<Capture>> captures;
    if (&stream != &stream.context->default_stream)
        return captures;
    for_each_capturing([&](CUstream_st& other) {
        if (other.context == stream.context && !(other.flags & CU_STREAM_NON_BLOCKING))
            captures.push_back(other.capture);
    });
    return captures;
}

// Its graph will never be: what that held is free from now on.
void invalidate(Capture& capture)
{
    capture.invalid = true;
    capture.graph->objects.clear();
}

}  // namespace

void for_each_graph(const std::function<void(const CUgraph_st&)>& visit)
{
    driver().graphs.for_each(visit);
    for_each_capturing([&](CUstream_st& stream) { visit(*stream.capture->graph); });
}

std::shared_ptr<CUgraph_st> get_graph(CUgraph handle)
{
    std::shared_ptr<CUgraph_st> graph = driver().graphs.find(handle);
    for_each_capturing([&](CUstream_st& stream) {
        if (stream.capture->graph.get() == handle && !stream.capture->invalid)
            graph = stream.capture->graph;
    });
    require(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    return graph;
}

bool unusable(const CUstream_st& stream) { return !in_the_way(stream).empty(); }

void forbid_implicit_order(const CUstream_st& stream)
{
    const auto captures = in_the_way(stream);
    for (const auto& capture : captures)
        invalidate(*capture);
    require(captures.empty(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUstream_st& get_usable_stream(CUstream handle)
{
    CUstream_st& stream = get_stream(handle);
    forbid_implicit_order(stream);
    return stream;
}

CUgraphNode add_node(CUstream_st& stream, Work work)
{
    require(!stream.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    auto& nodes = stream.capture->graph->nodes;
    nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{std::move(work), stream.last}));
    stream.last = {nodes.back().get()};
    return nodes.back().get();
}

void forbid_in_capture()
{
    bool found = false;
    for_each_capturing([&](CUstream_st& stream) {
        if (forbids(*stream.capture))
            found = true, invalidate(*stream.capture);
    });
    require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void forbid_capturing(CUstream_st& stream)
{
    forbid_implicit_order(stream);
    if (!stream.capture)
        return;
    invalidate(*stream.capture);
    throw Failure{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, ""};
}

void forbid_capture_in(CUctx_st& context)
{
    bool found = false;
    for_each_capturing([&](CUstream_st& stream) {
        if (stream.context == &context)
            found = true, invalidate(*stream.capture);
    });
    require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void join_capture(CUstream_st& stream, const CUevent_st& event)
{
    require(!event.capture || !event.capture->ended, CUDA_ERROR_CAPTURED_EVENT);
    if (!stream.capture) {
        require(&stream != &stream.context->default_stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        stream.capture = event.capture;
        stream.last = event.last;
        return;
    }
    if (stream.capture != event.capture) {
        invalidate(*stream.capture);
        if (!event.capture)
            throw Failure{CUDA_ERROR_STREAM_CAPTURE_ISOLATION, ""};
        invalidate(*event.capture);
        throw Failure{CUDA_ERROR_STREAM_CAPTURE_MERGE, ""};
    }
    for (CUgraphNode node : event.last)
        if (std::find(stream.last.begin(), stream.last.end(), node) == stream.last.end())
            stream.last.push_back(node);
}

}  // namespace emu::driver

using namespace emu::driver;

namespace {

// Nodes that some node of `from` depends on, with these.
std::set<CUgraphNode> reachable(const Nodes& from)
{
    std::set<CUgraphNode> seen;
    Nodes left = from;
    while (!left.empty()) {
        CUgraphNode node = left.back();
        left.pop_back();
        if (seen.insert(node).second)
            left.insert(left.end(), node->dependencies.begin(), node->dependencies.end());
    }
    return seen;
}

// Takes every stream out of the capture; is all that they did behind the origin?
bool leave(const std::shared_ptr<Capture>& capture)
{
    const std::set<CUgraphNode> joined = reachable(capture->origin->last);
    bool all = true;
    capture->ended = true;
    for_each_capturing([&](CUstream_st& stream) {
        if (stream.capture != capture)
            return;
        for (CUgraphNode node : stream.last)
            all = all && joined.count(node) == 1;
        stream.capture = nullptr;
        stream.last.clear();
    });
    return all;
}

void begin(CUstream handle, CUstreamCaptureMode mode)
{
    require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED,
            CUDA_ERROR_INVALID_VALUE);
    CUstream_st& stream = get_stream(handle);
    require(&stream != &stream.context->default_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require(!stream.capture, CUDA_ERROR_ILLEGAL_STATE);
    stream.capture =
        std::make_shared<Capture>(Capture{std::make_shared<CUgraph_st>(), &stream, mode,
                                          std::this_thread::get_id(), false, false, driver().next_id++});
    stream.last.clear();
}

void end(CUstream handle, CUgraph* graph)
{
    out(graph) = nullptr;
    CUstream_st& stream = get_stream(handle);
    const std::shared_ptr<Capture> capture = stream.capture;
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
                capture->thread == std::this_thread::get_id(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    const bool joined = leave(capture);
    auto made = std::move(capture->graph);  // events may know the capture for longer
    require(!capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    require(joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    *graph = driver().graphs.add(std::move(made));
}

CUstreamCaptureStatus status_of(const CUstream_st& stream)
{
    if (!stream.capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult get_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                  const CUgraphNode** dependencies, size_t* count)
{
    return call("cuStreamGetCaptureInfo", [&](CUctx_st&) {
        const CUstream_st& stream = get_stream(handle);
        require(!unusable(stream), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        out(status) = status_of(stream);
        if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            return;
        if (id)
            *id = stream.capture->id;
        if (graph)
            *graph = stream.capture->graph.get();
        if (dependencies)
            *dependencies = stream.last.data();
        if (count)
            *count = stream.last.size();
    });
}

CUresult update(CUstream handle, CUgraphNode* dependencies, size_t count, unsigned flags)
{
    return call("cuStreamUpdateCaptureDependencies", [&](CUctx_st&) {
        CUstream_st& stream = get_stream(handle);
        require(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE, CUDA_ERROR_ILLEGAL_STATE);
        require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES && (dependencies || count == 0),
                CUDA_ERROR_INVALID_VALUE);
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
            stream.last.clear();
        stream.last.insert(stream.last.end(), dependencies, dependencies + count);
    });
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    return call("cuStreamBeginCapture", [&](CUctx_st&) { begin(stream, mode); });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph)
{
    return call("cuStreamEndCapture", [&](CUctx_st&) { end(stream, graph); });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status)
{
    return call("cuStreamIsCapturing", [&](CUctx_st&) {
        const CUstream_st& stream = get_stream(handle);
        require(!unusable(stream), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        out(status) = status_of(stream);
    });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode)
{
    return call("cuThreadExchangeStreamCaptureMode", Needs::Driver, [&] {
        require(mode && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED,
                CUDA_ERROR_INVALID_VALUE);
        std::swap(*mode, thread_mode);
    });
}

// Versions of one function differ in what they tell; cuda.h declares the newest only.
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies
extern "C" CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id)
{
    return get_info(stream, status, id, nullptr, nullptr, nullptr);
}

extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                              cuuint64_t* id, CUgraph* graph,
                                              const CUgraphNode** dependencies, size_t* count)
{
    return get_info(stream, status, id, graph, dependencies, count);
}

extern "C" CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies,
                                                      size_t count, unsigned flags)
{
    return update(stream, dependencies, count, flags);
}

#if CUDA_VERSION >= 12030
extern "C" CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status,
                                              cuuint64_t* id, CUgraph* graph,
                                              const CUgraphNode** dependencies,
                                              const CUgraphEdgeData** edges, size_t* count)
{
    if (edges)
        *edges = nullptr;
    return get_info(stream, status, id, graph, dependencies, count);
}

extern "C" CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                                         const CUgraphEdgeData* edges, size_t count,
                                                         unsigned flags)
{
    if (edges)
        return CUDA_ERROR_NOT_SUPPORTED;
    return update(stream, dependencies, count, flags);
}
#endif
