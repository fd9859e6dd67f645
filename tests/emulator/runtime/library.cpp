// Libraries that a program loads itself, and their kernels.
#include "runtime/runtime.hpp"

using namespace emu::runtime;

#if CUDART_VERSION >= 12080

extern "C" {

// The driver knows the same options under the same numbers.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit_options,
                                void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                                void** values, unsigned count)
{
    return call([&] {
        return cuLibraryLoadData(reinterpret_cast<CUlibrary*>(library), code,
                                 reinterpret_cast<CUjit_option*>(jit_options), jit_values, jit_count,
                                 reinterpret_cast<CUlibraryOption*>(options), values, count);
    });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    return call([&] { return cuLibraryUnload(reinterpret_cast<CUlibrary>(library)); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name)
{
    return call([&] {
        return cuLibraryGetKernel(reinterpret_cast<CUkernel*>(kernel), reinterpret_cast<CUlibrary>(library),
                                  name);
    });
}

cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library, const char* name)
{
    return call([&] {
        return cuLibraryGetGlobal(reinterpret_cast<CUdeviceptr*>(pointer), bytes,
                                  reinterpret_cast<CUlibrary>(library), name);
    });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute which, int value,
                                            int device)
{
    return call([&] {
        return cuKernelSetAttribute(static_cast<CUfunction_attribute>(which), value,
                                    reinterpret_cast<CUkernel>(kernel), device);
    });
}

}  // extern "C"

#endif
