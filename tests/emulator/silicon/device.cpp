#include "device.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace emu::silicon {
namespace {

#define SILICON_CALLS(X)                                                                                   \
    X(cuInit)                                                                                              \
    X(cuGetErrorName)                                                                                      \
    X(cuDriverGetVersion)                                                                                  \
    X(cuDeviceGet)                                                                                         \
    X(cuDeviceGetName)                                                                                     \
    X(cuDeviceGetAttribute)                                                                                \
    X(cuDevicePrimaryCtxRetain)                                                                            \
    X(cuCtxSetCurrent)                                                                                     \
    X(cuCtxSynchronize)                                                                                    \
    X(cuMemAlloc)                                                                                          \
    X(cuMemFree)                                                                                           \
    X(cuMemcpyHtoD)                                                                                        \
    X(cuMemcpyDtoH)                                                                                        \
    X(cuModuleLoadData)                                                                                    \
    X(cuModuleUnload)                                                                                      \
    X(cuModuleGetFunction)                                                                                 \
    X(cuFuncSetAttribute)                                                                                  \
    X(cuLaunchKernelEx)                                                                                    \
    X(cuTensorMapEncodeTiled)

struct Calls {
#define SILICON_MEMBER(name) decltype(&::name) name = nullptr;
    SILICON_CALLS(SILICON_MEMBER)
#undef SILICON_MEMBER
} calls;

constexpr int abi = 12000;

void check(CUresult result, const char* call)
{
    if (result == CUDA_SUCCESS)
        return;
    const char* name = nullptr;
    calls.cuGetErrorName(result, &name);
    throw DriverError(fmt::format("{} {}", name ? name : "unknown", call));
}
#define CALL(name, ...) check(calls.name(__VA_ARGS__), #name)

struct Memory {
    CUdeviceptr address = 0;
    size_t bytes;

    explicit Memory(const std::vector<uint8_t>& data) : bytes(data.size())
    {
        CALL(cuMemAlloc, &address, bytes ? bytes : 16);
        if (bytes)
            CALL(cuMemcpyHtoD, address, data.data(), bytes);
    }
    Memory(const Memory&) = delete;
    ~Memory() { calls.cuMemFree(address); }
};

struct Module {
    CUmodule module = nullptr;
    CUfunction function = nullptr;

    explicit Module(const std::string& ptx)
    {
        CALL(cuModuleLoadData, &module, ptx.c_str());
        CALL(cuModuleGetFunction, &function, module, "kernel");
    }
    Module(const Module&) = delete;
    ~Module() { calls.cuModuleUnload(module); }
};

struct alignas(64) EncodedMap {
    CUtensorMap map;
};

EncodedMap encode(const TensorMap& m, CUdeviceptr base)
{
    EncodedMap encoded{};
    cuuint64_t size[5], stride[5];
    std::copy(m.size, m.size + 5, size);
    std::copy(m.stride, m.stride + 5, stride);
    CALL(cuTensorMapEncodeTiled, &encoded.map, static_cast<CUtensorMapDataType>(m.type), m.rank,
         reinterpret_cast<void*>(base + m.offset), size, stride, m.box, m.element_stride,
         CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(m.swizzle),
         CU_TENSOR_MAP_L2_PROMOTION_NONE, static_cast<CUtensorMapFloatOOBfill>(m.fill));
    return encoded;
}

void launch(const Kernel& kernel, CUfunction function, void** parameters)
{
    if (kernel.dynamic_shared > 48 * 1024)
        CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             static_cast<int>(kernel.dynamic_shared));
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = kernel.cluster.x;
    attribute.value.clusterDim.y = kernel.cluster.y;
    attribute.value.clusterDim.z = kernel.cluster.z;
    CUlaunchConfig config{};
    config.gridDimX = kernel.grid.x, config.gridDimY = kernel.grid.y, config.gridDimZ = kernel.grid.z;
    config.blockDimX = kernel.block.x, config.blockDimY = kernel.block.y, config.blockDimZ = kernel.block.z;
    config.sharedMemBytes = kernel.dynamic_shared;
    config.attrs = &attribute;
    config.numAttrs = kernel.cluster.x * kernel.cluster.y * kernel.cluster.z > 1;
    CALL(cuLaunchKernelEx, &config, function, parameters, nullptr);
}

}  // namespace

Device::Device()
{
    library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_)
        throw DriverError("libcuda.so.1 is not installed");
    using GetProcAddress =
        CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    const auto get = reinterpret_cast<GetProcAddress>(dlsym(library_, "cuGetProcAddress_v2"));
    if (!get)
        throw DriverError("the CUDA driver is older than 12.0");
    void* address = nullptr;
#define SILICON_RESOLVE(name)                                                                              \
    if (get(#name, &address, abi, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS || !address)       \
        throw DriverError("the CUDA driver has no " #name);                                                \
    calls.name = reinterpret_cast<decltype(calls.name)>(address);
    SILICON_CALLS(SILICON_RESOLVE)
#undef SILICON_RESOLVE
    CALL(cuInit, 0);
    CALL(cuDeviceGet, &device_, 0);
    CALL(cuDevicePrimaryCtxRetain, &context_, device_);
    CALL(cuCtxSetCurrent, context_);
}

std::string Device::describe() const
{
    char name[100] = {};
    int version = 0, major = 0, minor = 0;
    CALL(cuDeviceGetName, name, sizeof name, device_);
    CALL(cuDriverGetVersion, &version);
    CALL(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_);
    CALL(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_);
    return fmt::format("# device: {}, compute capability {}.{}\n# driver: CUDA {}.{}\n", name, major, minor,
                       version / 1000, version % 1000 / 10);
}

std::vector<uint8_t> Device::run(const Kernel& kernel)
{
    const Module module(kernel.ptx);
    const Memory input(kernel.input), output(kernel.output);
    std::vector<EncodedMap> maps;
    for (const TensorMap& map : kernel.maps)
        maps.push_back(encode(map, map.of_output ? output.address : input.address));
    CUdeviceptr in = input.address, out = output.address;
    std::vector<void*> parameters = {&in, &out};
    for (EncodedMap& map : maps)
        parameters.push_back(&map);
    std::vector<uint8_t> result(kernel.output.size());
    launch(kernel, module.function, parameters.data());
    try {
        CALL(cuCtxSynchronize);
        CALL(cuMemcpyDtoH, result.data(), output.address, result.size());
    } catch (const DriverError&) {
        lost_ = true;
        throw;
    }
    return result;
}

}  // namespace emu::silicon
