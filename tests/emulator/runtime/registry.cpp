// Modules, kernels and variables that nvcc's stubs register before main, and the current device.
#include "runtime/runtime.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace emu::runtime {
namespace {

struct Module {
    const void* image;
    CUlibrary library = nullptr;
};

struct Symbol {
    Module* module;
    std::string name;
    CUkernel kernel = nullptr;
};

// Never destroyed: stubs unregister at exit, in any order.
struct Registry {
    std::recursive_mutex mutex;
    std::vector<std::unique_ptr<Module>> modules;
    std::map<const void*, Symbol> kernels, variables;
};

Registry& registry()
{
    static auto* const instance = new Registry;
    return *instance;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local CUdevice device = 0;
thread_local bool ready = false;

CUlibrary library_of(Module& module)
{
    if (!module.library)
        require(cuLibraryLoadData(&module.library, module.image, nullptr, nullptr, 0, nullptr, nullptr, 0));
    return module.library;
}

// One context a device, retained once.
CUcontext context_of(CUdevice device)
{
    static std::map<CUdevice, CUcontext> contexts;
    const std::lock_guard lock(registry().mutex);
    CUcontext& context = contexts[device];
    if (!context)
        require(cuDevicePrimaryCtxRetain(&context, device));
    return context;
}

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

}  // namespace

cudaError_t answer(CUresult result)
{
    const auto error = static_cast<cudaError_t>(result);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

void require(CUresult result)
{
    if (result != CUDA_SUCCESS)
        throw result;
}

CUdevice current_device() { return device; }

void require_context()
{
    if (ready)
        return;
    require(cuInit(0));
    require(cuCtxSetCurrent(context_of(device)));
    ready = true;
}

CUkernel kernel_of(const void* stub)
{
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().kernels.find(stub);
    if (found == registry().kernels.end())
        return static_cast<CUkernel>(const_cast<void*>(stub));  // a cudaKernel_t
    Symbol& symbol = found->second;
    if (!symbol.kernel)
        require(cuLibraryGetKernel(&symbol.kernel, library_of(*symbol.module), symbol.name.c_str()));
    return symbol.kernel;
}

CUfunction function_of(const void* stub)
{
    CUfunction function;
    require(cuKernelGetFunction(&function, kernel_of(stub)));
    return function;
}

CUdeviceptr variable_of(const void* shadow, size_t* bytes)
{
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().variables.find(shadow);
    if (found == registry().variables.end())
        throw static_cast<CUresult>(cudaErrorInvalidSymbol);
    CUdeviceptr address;
    require(
        cuLibraryGetGlobal(&address, bytes, library_of(*found->second.module), found->second.name.c_str()));
    return address;
}

}  // namespace emu::runtime

using namespace emu::runtime;

extern "C" {

// ---- What nvcc's stubs call -------------------------------------------------------------------------
void** __cudaRegisterFatBinary(void* image)
{
    const std::lock_guard lock(registry().mutex);
    auto& module = registry().modules.emplace_back(std::make_unique<Module>());
    module->image = image;
    return reinterpret_cast<void**>(module.get());
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** module, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*)
{
    const std::lock_guard lock(registry().mutex);
    registry().kernels[stub] = {reinterpret_cast<Module*>(module), name};
}

void __cudaRegisterVar(void** module, char* shadow, char*, const char* name, int, size_t, int, int)
{
    const std::lock_guard lock(registry().mutex);
    registry().variables[shadow] = {reinterpret_cast<Module*>(module), name};
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configurations.push_back({grid, block, shared, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream)
{
    if (configurations.empty())
        return answer(cudaErrorMissingConfiguration);
    const Configuration& c = configurations.back();
    *grid = c.grid, *block = c.block, *shared = c.shared;
    *static_cast<cudaStream_t*>(stream) = c.stream;
    configurations.pop_back();
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub)
{
    return call([&] {
        *kernel = reinterpret_cast<cudaKernel_t>(kernel_of(stub));
        return CUDA_SUCCESS;
    });
}

// ---- Errors -----------------------------------------------------------------------------------------
cudaError_t cudaGetLastError()
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error)
{
    const char* name = nullptr;
    return cuGetErrorName(static_cast<CUresult>(error), &name) == CUDA_SUCCESS ? name : "cudaErrorUnknown";
}

const char* cudaGetErrorString(cudaError_t error)
{
    const char* text = nullptr;
    return cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS ? text
                                                                                 : "unrecognized error";
}

// ---- Device in use ----------------------------------------------------------------------------------
cudaError_t cudaSetDevice(int number)
{
    int count = 0;
    if (const CUresult result = cuInit(0); result != CUDA_SUCCESS)
        return answer(result);
    if (const CUresult result = cuDeviceGetCount(&count); result != CUDA_SUCCESS)
        return answer(result);
    if (number < 0 || number >= count)
        return answer(cudaErrorInvalidDevice);
    device = number;
    ready = false;
    return call([] { return CUDA_SUCCESS; });
}

cudaError_t cudaGetDevice(int* number)
{
    *number = device;
    return cudaSuccess;
}

}  // extern "C"
