// Functions that programs such as PyTorch are linked with, and that are not emulated. The runtime's header,
// which declares them with other arguments in CUDA 12 and 13, is not included.
namespace emu::runtime {
int answer_not_supported();
}

#define NOT_EMULATED(name)                                                                                 \
    extern "C" int name() { return emu::runtime::answer_not_supported(); }

NOT_EMULATED(cudaCreateSurfaceObject)
NOT_EMULATED(cudaCreateTextureObject)
NOT_EMULATED(cudaDeviceEnablePeerAccess)
NOT_EMULATED(cudaDeviceGetDefaultMemPool)
NOT_EMULATED(cudaDeviceGetGraphMemAttribute)
NOT_EMULATED(cudaDeviceSetGraphMemAttribute)
NOT_EMULATED(cudaGraphAddNode)
NOT_EMULATED(cudaGraphConditionalHandleCreate)
NOT_EMULATED(cudaGraphDebugDotPrint)
NOT_EMULATED(cudaGraphNodeGetDependencies)
NOT_EMULATED(cudaIpcCloseMemHandle)
NOT_EMULATED(cudaIpcGetEventHandle)
NOT_EMULATED(cudaIpcGetMemHandle)
NOT_EMULATED(cudaIpcOpenEventHandle)
NOT_EMULATED(cudaIpcOpenMemHandle)
NOT_EMULATED(cudaLaunchCooperativeKernel)
NOT_EMULATED(cudaLibraryGetKernelCount)
NOT_EMULATED(cudaLibraryGetManaged)
NOT_EMULATED(cudaLibraryGetUnifiedFunction)
NOT_EMULATED(cudaLibraryLoadFromFile)
NOT_EMULATED(cudaMalloc3DArray)
NOT_EMULATED(cudaMemcpyPeerAsync)
NOT_EMULATED(cudaMemPoolGetAttribute)
NOT_EMULATED(cudaMemPoolSetAccess)
NOT_EMULATED(cudaMemPoolSetAttribute)
NOT_EMULATED(cudaMemPoolTrimTo)
NOT_EMULATED(cudaStreamBeginCaptureToGraph)
