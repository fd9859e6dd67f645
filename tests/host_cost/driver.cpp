#include "driver.hpp"

#include <fmt/format.h>

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace hg::cost {
namespace {

#define DRIVER_CALLS(X)                                                                                    \
    X(cuInit)                                                                                              \
    X(cuDevicePrimaryCtxRetain)                                                                            \
    X(cuCtxSetCurrent)                                                                                     \
    X(cuCtxGetCurrent)                                                                                     \
    X(cuCtxSynchronize)                                                                                    \
    X(cuMemAlloc)                                                                                          \
    X(cuStreamCreate)                                                                                      \
    X(cuLibraryLoadData)                                                                                   \
    X(cuLibraryGetKernel)                                                                                  \
    X(cuKernelGetFunction)                                                                                 \
    X(cuLaunchKernelEx)

struct Calls {
#define MEMBER(name) decltype(&::name) name;
    DRIVER_CALLS(MEMBER)
#undef MEMBER
} cu;

void check(CUresult result, const char* call)
{
    if (result != CUDA_SUCCESS)
        throw std::runtime_error(fmt::format("{} answers {}", call, static_cast<int>(result)));
}
#define CHECK(name, ...) check(cu.name(__VA_ARGS__), #name)

void load()
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    const auto get = library ? reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
    if (!get)
        throw std::runtime_error("no CUDA driver (libcuda.so.1)");
    void* address = nullptr;
#define RESOLVE(name)                                                                                      \
    check(get(#name, &address, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr), #name);                       \
    cu.name = reinterpret_cast<decltype(cu.name)>(address);
    DRIVER_CALLS(RESOLVE)
#undef RESOLVE
}

std::string kernel_text(size_t parameter_bytes)
{
    return fmt::format(".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry idle(.param .align 64 .b8 parameter[{}])\n{{ ret; }}\n",
                       parameter_bytes);
}

}  // namespace

Driver::Driver()
{
    load();
    CUcontext context = nullptr;
    CHECK(cuInit, 0);
    CHECK(cuDevicePrimaryCtxRetain, &context, 0);
    CHECK(cuCtxSetCurrent, context);
    for (const size_t bytes : sizes) {
        const std::string text = kernel_text(bytes);
        CUlibrary library = nullptr;
        Kernel kernel{};
        CHECK(cuLibraryLoadData, &library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        CHECK(cuLibraryGetKernel, &kernel.kernel, library, "idle");
        CHECK(cuKernelGetFunction, &kernel.function, kernel.kernel);
        kernels_.push_back(kernel);
    }
}

char* Driver::allocate(size_t bytes) const
{
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc, &memory, bytes);
    return reinterpret_cast<char*>(memory);
}

void Driver::wait() const { CHECK(cuCtxSynchronize); }

CUstream Driver::create_stream() const
{
    CUstream stream = nullptr;
    CHECK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    return stream;
}

void Driver::look_up_context() const
{
    CUcontext context = nullptr;
    CHECK(cuCtxGetCurrent, &context);
}

void Driver::launch(const Launch& launch, CUstream stream) const
{
    alignas(64) static char parameter[1024];
    const auto size = std::find(std::begin(sizes), std::end(sizes), launch.parameter_bytes);
    const Kernel& kernel = kernels_[static_cast<size_t>(size - std::begin(sizes))];
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.gridDimX = std::max(1u, launch.cluster);
    config.blockDimX = 128;
    config.hStream = stream;
    config.attrs = attributes;
    if (launch.cluster > 1) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs++].value.clusterDim = {launch.cluster, 1, 1};
    }
    if (launch.overlaps) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
    }
    void* parameters[] = {parameter};
    const auto function =
        launch.as_function ? kernel.function : reinterpret_cast<CUfunction>(kernel.kernel);
    CHECK(cuLaunchKernelEx, &config, function, parameters, nullptr);
}

}  // namespace hg::cost
