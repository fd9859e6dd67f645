// Attributes of kernels, and occupancy.
#include "driver/function.hpp"
#include "driver/attributes.hpp"
#include "driver/call.hpp"

using namespace emu::driver;

namespace emu::driver {

int largest_block(const ptx::Kernel& kernel)
{
    int64_t threads = 1;
    for (int i = 0; i < 3; ++i)
        threads *= std::max(1, kernel.required_threads[0] > 0 ? kernel.required_threads[i]
                                                              : kernel.max_threads[i]);
    return kernel.required_threads[0] > 0 || kernel.max_threads[0] > 0
               ? static_cast<int>(std::min<int64_t>(threads, threads_per_block))
               : threads_per_block;
}

// PTX has no register count: as many as the launch bounds allow the compiler.
int registers_per_thread(const ptx::Kernel& kernel)
{
    if (kernel.max_registers > 0)
        return kernel.max_registers;
    const int threads = largest_block(kernel) * std::max(1, kernel.min_ctas);
    return std::clamp(registers_per_sm / threads / 8 * 8, 16, 255);
}

int blocks_per_sm(const Function& function, const Config& config, int threads, size_t dynamic_shared)
{
    require(threads > 0, CUDA_ERROR_INVALID_VALUE);
    if (threads > largest_block(*function.kernel) ||
        dynamic_shared > static_cast<size_t>(function.max_dynamic_shared))
        return 0;
    const Limits most = limits(config);
    const int rounded = (threads + 31) / 32 * 32;
    const int shared = static_cast<int>(function.kernel->shared_bytes + dynamic_shared) + reserved_smem;
    return std::min({most.blocks_per_sm, most.threads_per_sm / rounded,
                     std::max(most.smem_per_sm, shared) / shared,
                     std::max(1, registers_per_sm / (registers_per_thread(*function.kernel) * rounded))});
}

}  // namespace emu::driver

namespace {

// Known when the body is read.
int local_bytes(const Function& f)
{
    return static_cast<int>(f.loaded->instances.front().module->kernel(f.kernel->name)->local_bytes);
}

int get_attribute(const Function& f, CUfunction_attribute attribute)
{
    const emu::Config& config = driver().config;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return largest_block(*f.kernel);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(f.kernel->shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return local_bytes(f);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return registers_per_thread(*f.kernel);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return config.cc;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return f.max_dynamic_shared;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return f.carveout;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return f.kernel->explicit_cluster && f.cluster[0] == 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return f.cluster[0];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return f.cluster[1];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return f.cluster[2];
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return f.non_portable_cluster;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return f.cluster_policy;
    default: throw Failure{CUDA_ERROR_INVALID_VALUE, ""};
    }
}

void set_attribute(Function& f, CUfunction_attribute attribute, int value)
{
    const emu::Config& config = driver().config;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        require(value >= 0 && value + f.kernel->shared_bytes <= config.smem_optin,
                CUDA_ERROR_INVALID_VALUE);
        f.max_dynamic_shared = value;
        return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        require(value >= -1 && value <= 100, CUDA_ERROR_INVALID_VALUE);
        f.carveout = value;
        return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        // What the kernel was compiled for cannot be changed.
        require(value > 0 && config.cc >= 90 && f.kernel->cluster[0] == 0, CUDA_ERROR_INVALID_VALUE);
        f.cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        require(config.cc >= 90, CUDA_ERROR_NOT_SUPPORTED);
        f.non_portable_cluster = value != 0;
        return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: f.cluster_policy = value; return;
    default: throw Failure{CUDA_ERROR_INVALID_VALUE, ""};
    }
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function)
{
    return call("cuFuncGetAttribute", [&](CUctx_st&) {
        out(value) = get_attribute(*driver().functions.get(function), attribute);
    });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    return call("cuFuncSetAttribute",
                [&](CUctx_st&) { set_attribute(*driver().functions.get(function), attribute, value); });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache)
{
    return call("cuFuncSetCacheConfig", [&](CUctx_st&) { driver().functions.get(function); });
}

CUresult cuFuncGetName(const char** name, CUfunction function)
{
    return call("cuFuncGetName", Needs::Driver,
                [&] { out(name) = driver().functions.get(function)->kernel->name.c_str(); });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function)
{
    return call("cuFuncGetModule", Needs::Driver, [&] {
        out(module) = reinterpret_cast<CUmodule>(driver().functions.get(function)->loaded.get());
    });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    return call("cuKernelGetAttribute", Needs::Driver, [&] {
        get_device(device);
        out(value) = get_attribute(*driver().functions.get(kernel), attribute);
    });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    return call("cuKernelSetAttribute", Needs::Driver, [&] {
        get_device(device);
        set_attribute(*driver().functions.get(kernel), attribute, value);
    });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel)
{
    return call("cuKernelGetName", Needs::Driver,
                [&] { out(name) = driver().functions.get(kernel)->kernel->name.c_str(); });
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel)
{
    return call("cuKernelGetLibrary", Needs::Driver, [&] {
        out(library) = reinterpret_cast<CUlibrary>(driver().functions.get(kernel)->loaded.get());
    });
}

#if CUDA_VERSION >= 12040
namespace {

void tell_parameter(const Function& function, size_t index, size_t* offset, size_t* bytes)
{
    const auto& parameters = function.kernel->parameters;
    require(index < parameters.size(), CUDA_ERROR_INVALID_VALUE);
    out(offset) = static_cast<size_t>(parameters[index].offset);
    if (bytes)
        *bytes = static_cast<size_t>(parameters[index].bytes);
}

}  // namespace

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes)
{
    return call("cuFuncGetParamInfo", Needs::Driver,
                [&] { tell_parameter(*driver().functions.get(function), index, offset, bytes); });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes)
{
    return call("cuKernelGetParamInfo", Needs::Driver,
                [&] { tell_parameter(*driver().functions.get(kernel), index, offset, bytes); });
}
#endif

// ---- Occupancy --------------------------------------------------------------------------------------
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t shared)
{
    return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](CUctx_st&) {
        out(blocks) = blocks_per_sm(*driver().functions.get(function), driver().config, threads, shared);
    });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              size_t shared, unsigned flags)
{
    return call("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", [&](CUctx_st&) {
        require(flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE, CUDA_ERROR_INVALID_VALUE);
        out(blocks) = blocks_per_sm(*driver().functions.get(function), driver().config, threads, shared);
    });
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config)
{
    return call("cuOccupancyMaxActiveClusters", [&](CUctx_st&) {
        require(config != nullptr, CUDA_ERROR_INVALID_VALUE);
        const Function& function = *driver().functions.get(handle);
        const emu::Launch launch = check_launch(function, *config);
        const int per_sm = blocks_per_sm(function, driver().config, static_cast<int>(launch.block.count()),
                                         launch.dynamic_shared);
        out(clusters) = per_sm * driver().config.sm_count / static_cast<int>(launch.cluster.count());
    });
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig* config)
{
    return call("cuOccupancyMaxPotentialClusterSize", [&](CUctx_st&) {
        require(config != nullptr && driver().config.cc >= 90, CUDA_ERROR_INVALID_VALUE);
        out(size) =
            driver().functions.get(handle)->non_portable_cluster ? largest_cluster : portable_cluster;
    });
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks, int threads)
{
    return call("cuOccupancyAvailableDynamicSMemPerBlock", [&](CUctx_st&) {
        require(blocks > 0 && threads > 0, CUDA_ERROR_INVALID_VALUE);
        const Function& function = *driver().functions.get(handle);
        const int share = limits(driver().config).smem_per_sm / blocks - reserved_smem;
        const auto left = std::min(share, driver().config.smem_optin) - function.kernel->shared_bytes;
        out(bytes) = static_cast<size_t>(std::max<int64_t>(0, left));
    });
}
