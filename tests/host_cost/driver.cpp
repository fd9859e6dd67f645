#include "driver.hpp"
#include "entry_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

#define CHECK(name, ...) check(cu.name ? cu.name(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND, #name)

void load()
{
    const EntryPoints driver;
#define FIND(name) driver.find(#name, 12000, cu.name);
    DRIVER_CALLS(FIND)
#undef FIND
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
