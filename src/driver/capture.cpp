// Captures of streams into graphs: the part of the driver that keeps them apart.
#include "src/driver/calls.hpp"
#include "src/driver/driver.hpp"

#include <cuda.h>

namespace hg::driver {

Status is_capturing(hgemm_stream_t stream, bool& capturing)
{
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = calls().cuStreamIsCapturing(stream, &found);
    capturing = result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || found != CU_STREAM_CAPTURE_STATUS_NONE;
    return capturing ? ok : check(result, "cuStreamIsCapturing");
}

Status find_place(hgemm_stream_t stream, Place& place)
{
    place = {};
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t capture = 0;
    CUgraph graph = nullptr;
    const CUresult result =
        calls().cuStreamGetCaptureInfo(stream, &found, &capture, &graph, nullptr, nullptr);
    // The default stream beside a capture that forbids its use: the launch will say so.
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return ok;
    Status status = check(result, "cuStreamGetCaptureInfo");
    if (status == ok && found == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        // The driver does not tell the number of a stream that is captured, and no other one has its address.
        place = {reinterpret_cast<uintptr_t>(stream), capture, graph};
        return ok;
    }
    // To name the default stream could end captures.
    const bool is_default = reinterpret_cast<uintptr_t>(stream) <= 1;
    unsigned long long id = 0;
    if (status == ok && !is_default)
        status = check(calls().cuStreamGetId(stream, &id), "cuStreamGetId");
    place.stream = id;
    return status;
}

Status context_id(void* context, uint64_t& id)
{
    unsigned long long found = 0;
    const Status status = check(calls().cuCtxGetId(static_cast<CUcontext>(context), &found), "cuCtxGetId");
    id = found;
    return status;
}

Status keep_with(void* graph, void* object, void (*destroy)(void*))
{
    CUuserObject kept = nullptr;
    Status status =
        check(calls().cuUserObjectCreate(&kept, object, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
              "cuUserObjectCreate");
    if (status != ok) {
        destroy(object);
        return status;
    }
    status = check(calls().cuGraphRetainUserObject(static_cast<CUgraph>(graph), kept, 1,
                                                   CU_GRAPH_USER_OBJECT_MOVE),
                   "cuGraphRetainUserObject");
    if (status != ok)
        calls().cuUserObjectRelease(kept, 1);
    return status;
}

BesideCaptures::BesideCaptures() : mode_(CU_STREAM_CAPTURE_MODE_RELAXED)
{
    auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    calls().cuThreadExchangeStreamCaptureMode(&mode);
    mode_ = mode;
}

BesideCaptures::~BesideCaptures()
{
    auto mode = static_cast<CUstreamCaptureMode>(mode_);
    calls().cuThreadExchangeStreamCaptureMode(&mode);
}

}  // namespace hg::driver
