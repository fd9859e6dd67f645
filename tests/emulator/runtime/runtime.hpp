// A CUDA runtime on the emulated driver, by the runtime's documented interface alone: NVIDIA's own runtime
// works with NVIDIA's driver only.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace emu::runtime {

// What every function of the runtime returns: errors have the driver's numbers, and the last one is kept.
cudaError_t answer(CUresult result);
inline cudaError_t answer(cudaError_t error) { return answer(static_cast<CUresult>(error)); }

// The driver is initialised and the thread has the context of its device; throws CUresult.
void require_context();
void require(CUresult result);  // throws it unless it is CUDA_SUCCESS
CUdevice current_device();

// The work of a function that needs a context.
template <typename Body>
cudaError_t call(Body body) noexcept
{
    try {
        require_context();
        return answer(body());
    } catch (CUresult result) {
        return answer(result);
    }
}

// What nvcc's stubs have registered, loaded when first used: kernels by the address of their stub, or a
// handle already; variables by that of their shadow on the host.
CUfunction function_of(const void* stub);
CUkernel kernel_of(const void* stub);
CUdeviceptr variable_of(const void* shadow, size_t* bytes);

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline CUstream stream_of(cudaStream_t stream) { return reinterpret_cast<CUstream>(stream); }

}  // namespace emu::runtime
