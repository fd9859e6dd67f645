// Streams and events.
#include "runtime/runtime.hpp"

using namespace emu::runtime;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags)
{
    return call([&] { return cuStreamCreate(reinterpret_cast<CUstream*>(stream), flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority)
{
    return call(
        [&] { return cuStreamCreateWithPriority(reinterpret_cast<CUstream*>(stream), flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return call([&] { return cuStreamDestroy(stream_of(stream)); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return call([&] { return cuStreamSynchronize(stream_of(stream)); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return call([&] { return cuStreamQuery(stream_of(stream)); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority)
{
    return call([&] { return cuStreamGetPriority(stream_of(stream), priority); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data)
{
    return call([&] { return cuLaunchHostFunc(stream_of(stream), function, data); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                  unsigned flags)
{
    return call([&] {
        return cuStreamAddCallback(stream_of(stream), reinterpret_cast<CUstreamCallback>(function), data,
                                   flags);
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return call(
        [&] { return cuStreamWaitEvent(stream_of(stream), reinterpret_cast<CUevent>(event), flags); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags)
{
    return call([&] { return cuEventCreate(reinterpret_cast<CUevent*>(event), flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return call([&] { return cuEventDestroy(reinterpret_cast<CUevent>(event)); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return call([&] { return cuEventRecord(reinterpret_cast<CUevent>(event), stream_of(stream)); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return call(
        [&] { return cuEventRecordWithFlags(reinterpret_cast<CUevent>(event), stream_of(stream), flags); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return call([&] { return cuEventSynchronize(reinterpret_cast<CUevent>(event)); });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return call([&] { return cuEventQuery(reinterpret_cast<CUevent>(event)); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return call([&] {
        return cuEventElapsedTime(milliseconds, reinterpret_cast<CUevent>(start),
                                  reinterpret_cast<CUevent>(end));
    });
}

}  // extern "C"
