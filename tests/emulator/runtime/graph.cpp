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

}  // extern "C"
