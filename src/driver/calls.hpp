// The entry points of the CUDA driver, for the files that call it: driver*.cpp.
#pragma once

#include "src/base/status.hpp"

#include <cuda.h>

namespace hg::driver {

// Entry points, with the CUDA version whose behaviour is asked for. 12.0 is the oldest driver that has
// context-independent libraries.
constexpr int abi = 12000;

#define HGEMM_DRIVER_CALLS(X)                                                                              \
    X(cuInit)                                                                                              \
    X(cuGetErrorString)                                                                                    \
    X(cuDeviceGet)                                                                                         \
    X(cuDeviceGetCount)                                                                                    \
    X(cuDeviceGetName)                                                                                     \
    X(cuDeviceGetAttribute)                                                                                \
    X(cuDevicePrimaryCtxRetain)                                                                            \
    X(cuDevicePrimaryCtxRelease)                                                                           \
    X(cuCtxGetCurrent)                                                                                     \
    X(cuCtxGetDevice)                                                                                      \
    X(cuCtxGetId)                                                                                          \
    X(cuCtxPushCurrent)                                                                                    \
    X(cuCtxPopCurrent)                                                                                     \
    X(cuMemAlloc)                                                                                          \
    X(cuMemFree)                                                                                           \
    X(cuMemcpyDtoHAsync)                                                                                   \
    X(cuMemcpyHtoDAsync)                                                                                   \
    X(cuMemsetD8Async)                                                                                     \
    X(cuStreamCreate)                                                                                      \
    X(cuStreamSynchronize)                                                                                 \
    X(cuStreamDestroy)                                                                                     \
    X(cuStreamGetCtx)                                                                                      \
    X(cuStreamGetId)                                                                                       \
    X(cuStreamIsCapturing)                                                                                 \
    X(cuEventCreate)                                                                                       \
    X(cuEventRecord)                                                                                       \
    X(cuEventElapsedTime)                                                                                  \
    X(cuEventDestroy)                                                                                      \
    X(cuLibraryLoadData)                                                                                   \
    X(cuLibraryUnload)                                                                                     \
    X(cuLibraryGetKernel)                                                                                  \
    X(cuKernelSetAttribute)                                                                                \
    X(cuThreadExchangeStreamCaptureMode)                                                                   \
    X(cuUserObjectCreate)                                                                                  \
    X(cuUserObjectRelease)                                                                                 \
    X(cuGraphRetainUserObject)                                                                             \
    X(cuLaunchKernelEx)                                                                                    \
    X(cuTensorMapEncodeTiled)

// Declarations of green contexts, which drivers older than 12.5 and the cuda.h of older toolkits do not
// have.
struct SmResource {  // CUdevResource of that type
    int type;
    unsigned char unused[92];
    unsigned sm_count, least, alignment;
    unsigned char reserved[36];
};
static_assert(sizeof(SmResource) == 144);
constexpr int sm_resource = 1;  // CU_DEV_RESOURCE_TYPE_SM

using GreenContext = void*;
using StreamGetContexts = CUresult (*)(CUstream, CUcontext* primary, GreenContext*);  // cuStreamGetCtx_v2
using GreenCtxGetDevResource = CUresult (*)(GreenContext, SmResource*, int type);
using CtxGetDevResource = CUresult (*)(CUcontext, SmResource*, int type);

// As in CUDA 12.0; the cuda.h of CUDA 13 has this name for a later form.
using StreamGetCaptureInfo = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t* id, CUgraph*,
                                          const CUgraphNode** dependencies, size_t* count);

struct Calls {
#define HGEMM_MEMBER(name) decltype(&::name) name;
    HGEMM_DRIVER_CALLS(HGEMM_MEMBER)
#undef HGEMM_MEMBER
    StreamGetContexts cuStreamGetCtx_v2;  // null, and the next one, where there are no green contexts
    GreenCtxGetDevResource cuGreenCtxGetDevResource;
    CtxGetDevResource cuCtxGetDevResource;  // null before 12.4
    StreamGetCaptureInfo cuStreamGetCaptureInfo;
    const char* absent;  // null when every entry point was found
    CUresult started;    // the result of cuInit
};

// Resolved by the first handle; compute calls find it ready.
const Calls& calls();

// The status that an answer means, with an error that names the call.
Status check(CUresult result, const char* call, Status status = HGEMM_STATUS_DRIVER_ERROR);

}  // namespace hg::driver
