// Launches, and what kernels need and may have.
#include "runtime/runtime.hpp"

#include <vector>

using namespace emu::runtime;

namespace {

CUlaunchConfig config_of(const cudaLaunchConfig_t& c)
{
    CUlaunchConfig config{};
    config.gridDimX = c.gridDim.x, config.gridDimY = c.gridDim.y, config.gridDimZ = c.gridDim.z;
    config.blockDimX = c.blockDim.x, config.blockDimY = c.blockDim.y, config.blockDimZ = c.blockDim.z;
    config.sharedMemBytes = static_cast<unsigned>(c.dynamicSmemBytes);
    config.hStream = stream_of(c.stream);
    config.attrs = reinterpret_cast<CUlaunchAttribute*>(c.attrs);  // the same type under two names
    config.numAttrs = c.numAttrs;
    return config;
}

CUresult launch(CUfunction function, dim3 grid, dim3 block, void** arguments, size_t shared,
                cudaStream_t stream)
{
    return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                          static_cast<unsigned>(shared), stream_of(stream), arguments, nullptr);
}

int attribute(CUfunction_attribute which, CUfunction function)
{
    int value = 0;
    require(cuFuncGetAttribute(&value, which, function));
    return value;
}

}  // namespace

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream)
{
    return call([&] {
        return launch(reinterpret_cast<CUfunction>(kernel), grid, block, arguments, shared, stream);
    });
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream)
{
    return call([&] { return launch(function_of(stub), grid, block, arguments, shared, stream); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** arguments)
{
    return call([&] {
        const CUlaunchConfig c = config_of(*config);
        return cuLaunchKernelEx(&c, function_of(stub), arguments, nullptr);
    });
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute which, int value)
{
    return call([&] {
        return cuFuncSetAttribute(function_of(stub), static_cast<CUfunction_attribute>(which), value);
    });
}

cudaError_t cudaFuncSetCacheConfig(const void* stub, cudaFuncCache config)
{
    return call([&] { return cuFuncSetCacheConfig(function_of(stub), static_cast<CUfunc_cache>(config)); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub)
{
    return call([&] {
        const CUfunction f = function_of(stub);
        *attributes = {};
        attributes->sharedSizeBytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f);
        attributes->constSizeBytes = attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, f);
        attributes->localSizeBytes = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f);
        attributes->maxThreadsPerBlock = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);
        attributes->numRegs = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS, f);
        attributes->ptxVersion = attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION, f);
        attributes->binaryVersion = attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION, f);
        attributes->maxDynamicSharedSizeBytes =
            attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f);
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                          size_t shared)
{
    return call([&] {
        return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function_of(stub), threads, shared);
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int threads, size_t shared,
                                                                   unsigned flags)
{
    return call([&] {
        return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function_of(stub), threads,
                                                                    shared, flags);
    });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* stub,
                                           const cudaLaunchConfig_t* config)
{
    return call([&] {
        const CUlaunchConfig c = config_of(*config);
        return cuOccupancyMaxActiveClusters(clusters, function_of(stub), &c);
    });
}

}  // extern "C"
