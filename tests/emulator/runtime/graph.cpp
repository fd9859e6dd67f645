// Captures and graphs.
#include "runtime/runtime.hpp"

using namespace emu::runtime;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return call(
        [&] { return cuStreamBeginCapture(stream_of(stream), static_cast<CUstreamCaptureMode>(mode)); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph)
{
    return call([&] { return cuStreamEndCapture(stream_of(stream), reinterpret_cast<CUgraph*>(graph)); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status)
{
    return call([&] {
        return cuStreamIsCapturing(stream_of(stream), reinterpret_cast<CUstreamCaptureStatus*>(status));
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode)
{
    return call(
        [&] { return cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return call([&] {
        return cuGraphInstantiateWithFlags(reinterpret_cast<CUgraphExec*>(executable),
                                           reinterpret_cast<CUgraph>(graph), flags);
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    return call(
        [&] { return cuGraphLaunch(reinterpret_cast<CUgraphExec>(executable), stream_of(stream)); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count)
{
    return call([&] {
        return cuGraphGetNodes(reinterpret_cast<CUgraph>(graph), reinterpret_cast<CUgraphNode*>(nodes),
                               count);
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return call([&] { return cuGraphDestroy(reinterpret_cast<CUgraph>(graph)); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    return call([&] { return cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(executable)); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream)
{
    return call(
        [&] { return cuGraphUpload(reinterpret_cast<CUgraphExec>(executable), stream_of(stream)); });
}

cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph)
{
    return call(
        [&] { return cuGraphClone(reinterpret_cast<CUgraph*>(copy), reinterpret_cast<CUgraph>(graph)); });
}

// ---- User objects -----------------------------------------------------------------------------------
cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy, unsigned count,
                                 unsigned flags)
{
    return call([&] {
        return cuUserObjectCreate(reinterpret_cast<CUuserObject*>(object), data, destroy, count, flags);
    });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count)
{
    return call([&] { return cuUserObjectRetain(reinterpret_cast<CUuserObject>(object), count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    return call([&] { return cuUserObjectRelease(reinterpret_cast<CUuserObject>(object), count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags)
{
    return call([&] {
        return cuGraphRetainUserObject(reinterpret_cast<CUgraph>(graph),
                                       reinterpret_cast<CUuserObject>(object), count, flags);
    });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count)
{
    return call([&] {
        return cuGraphReleaseUserObject(reinterpret_cast<CUgraph>(graph),
                                        reinterpret_cast<CUuserObject>(object), count);
    });
}

// ---- Captures in progress ---------------------------------------------------------------------------
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* count)
{
    return call([&] {
        return cuStreamGetCaptureInfo(stream_of(stream), reinterpret_cast<CUstreamCaptureStatus*>(status),
                                      reinterpret_cast<cuuint64_t*>(id), reinterpret_cast<CUgraph*>(graph),
                                      reinterpret_cast<const CUgraphNode**>(dependencies),
                                      reinterpret_cast<const CUgraphEdgeData**>(edges), count);
    });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count,
                                                unsigned flags)
{
    return call([&] {
        return cuStreamUpdateCaptureDependencies(
            stream_of(stream), reinterpret_cast<CUgraphNode*>(dependencies),
            reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
    });
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, size_t* count)
{
    return call([&] {
        return cuStreamGetCaptureInfo_v2(
            stream_of(stream), reinterpret_cast<CUstreamCaptureStatus*>(status),
            reinterpret_cast<cuuint64_t*>(id), reinterpret_cast<CUgraph*>(graph),
            reinterpret_cast<const CUgraphNode**>(dependencies), count);
    });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                size_t count, unsigned flags)
{
    return call([&] {
        return cuStreamUpdateCaptureDependencies(
            stream_of(stream), reinterpret_cast<CUgraphNode*>(dependencies), count, flags);
    });
}
#endif

}  // extern "C"
