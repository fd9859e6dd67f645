// Kernel launches: checks and parameters.
#include "core/scheduler.hpp"
#include "driver/attributes.hpp"
#include "driver/call.hpp"
#include "driver/function.hpp"
#include "driver/kernel_run.hpp"

#include <cstdlib>
#include <cstring>

using namespace emu::driver;

namespace {

void read_attribute(const CUlaunchAttribute& attribute, emu::Launch& launch)
{
    switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        const auto& c = attribute.value.clusterDim;
        require(c.x > 0 && c.y > 0 && c.z > 0, CUDA_ERROR_INVALID_VALUE);
        launch.cluster = {c.x, c.y, c.z};
        return;
    }
    // Grids run one after the other all the same; EMU_DEPENDENT looks whether this one waits.
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        launch.overlaps = attribute.value.programmaticStreamSerializationAllowed != 0;
        return;
    // Hints.
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
#if CUDA_VERSION >= 12080
    // The larger clusters that it allows need not be used.
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
#endif
        return;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (!attribute.value.cooperative)
            return;
        throw Failure{CUDA_ERROR_NOT_SUPPORTED, "cooperative launches are not emulated"};
    default:
        throw Failure{CUDA_ERROR_NOT_SUPPORTED,
                      "launch attribute " + std::to_string(attribute.id) + " is not emulated"};
    }
}

[[noreturn]] void refuse(const Function& function, CUresult result, const std::string& why)
{
    std::string place = function.kernel->name;
    if (!function.loaded->instances.empty())
        place += ", " + emu::source_text(function.loaded->instances.front().module->module(),
                                         function.kernel->line);
    throw Failure{result, why + "\n  in " + place};
}

std::string text(const emu::Dim3& d)
{
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

void check_block(const Function& function, const emu::Launch& launch)
{
    const emu::Dim3 &block = launch.block, &grid = launch.grid;
    const emu::ptx::Kernel& kernel = *function.kernel;
    const auto no = [&](const std::string& why) { refuse(function, CUDA_ERROR_INVALID_VALUE, why); };
    if (grid.count() == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
        no("a grid of " + text(grid) + " blocks");
    if (block.count() == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 ||
        block.count() > threads_per_block)
        no("a block of " + text(block) + " threads");
    const uint32_t sizes[] = {block.x, block.y, block.z};
    for (int i = 0; kernel.required_threads[0] > 0 && i < 3; ++i)
        if (sizes[i] != static_cast<uint32_t>(std::max(1, kernel.required_threads[i])))
            no("a block of " + text(block) + " threads differs from .reqntid");
    if (block.count() > static_cast<uint64_t>(largest_block(kernel)))
        no("a block of " + text(block) + " threads is larger than .maxntid");
}

void check_shared(const Function& function, const emu::Launch& launch)
{
    if (launch.dynamic_shared > static_cast<uint32_t>(function.max_dynamic_shared))
        refuse(function, CUDA_ERROR_INVALID_VALUE,
               std::to_string(launch.dynamic_shared) + " bytes of dynamic shared memory, at most " +
                   std::to_string(function.max_dynamic_shared) + " are allowed");
    const int64_t bytes = function.kernel->shared_bytes + launch.dynamic_shared;
    if (bytes > driver().config.smem_optin)
        refuse(function, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
               std::to_string(bytes) + " bytes of shared memory, there are " +
                   std::to_string(driver().config.smem_optin));
}

// A cluster comes with the launch or with the kernel; where both tell, they must agree.
void check_cluster(const Function& function, bool given, emu::Launch& launch)
{
    const auto no = [&](const std::string& why) {
        refuse(function, CUDA_ERROR_INVALID_CLUSTER_SIZE, "a cluster of " + text(launch.cluster) + why);
    };
    const int* required = function.cluster;
    if (required[0] > 0) {
        const emu::Dim3 fixed = {static_cast<uint32_t>(required[0]),
                                 static_cast<uint32_t>(std::max(1, required[1])),
                                 static_cast<uint32_t>(std::max(1, required[2]))};
        const emu::Dim3& asked = launch.cluster;
        if (given && (asked.x != fixed.x || asked.y != fixed.y || asked.z != fixed.z))
            no(" where the kernel asks for " + text(fixed));
        launch.cluster = fixed;
    } else if (function.kernel->explicit_cluster && !given) {
        no(": the kernel needs a cluster dimension");
    }
    const emu::Dim3 &c = launch.cluster, &g = launch.grid;
    if (c.count() > 1 && driver().config.cc < 90)
        no(": clusters need sm_90");
    const int most = function.non_portable_cluster ? largest_cluster : portable_cluster;
    if (c.count() > static_cast<uint64_t>(most))
        no(", at most " + std::to_string(most) + " are allowed");
    if (g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0)
        no(" does not divide the grid of " + text(g));
}

std::vector<uint8_t> copy_parameters(const Function& function, void** parameters)
{
    const emu::ptx::Kernel& kernel = *function.kernel;
    std::vector<uint8_t> block(static_cast<size_t>(kernel.parameter_bytes));
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
        const emu::ptx::Variable& parameter = kernel.parameters[i];
        if (!parameters || !parameters[i])
            refuse(function, CUDA_ERROR_INVALID_VALUE, "parameter " + std::to_string(i) + " is missing");
        std::memcpy(block.data() + parameter.offset, parameters[i], static_cast<size_t>(parameter.bytes));
    }
    return block;
}

// The other way to pass parameters: as one block of bytes.
std::vector<uint8_t> copy_block(const Function& function, void** extra)
{
    const uint8_t* bytes = nullptr;
    size_t count = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            bytes = static_cast<const uint8_t*>(extra[1]);
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            count = *static_cast<const size_t*>(extra[1]);
        else
            refuse(function, CUDA_ERROR_INVALID_VALUE, "unknown word in the list of extra arguments");
    }
    const auto needed = static_cast<size_t>(function.kernel->parameter_bytes);
    if (!bytes || count < needed)
        refuse(function, CUDA_ERROR_INVALID_VALUE,
               std::to_string(bytes ? count : 0) + " bytes of parameters where there are " +
                   std::to_string(needed));
    return {bytes, bytes + needed};
}

void launch(CUfunction handle, const CUlaunchConfig& config, void** parameters, void** extra)
{
    const auto function = driver().functions.get(handle);
    require(!parameters || !extra, CUDA_ERROR_INVALID_VALUE);
    emu::Launch launch = check_launch(*function, config);
    launch.parameters = extra ? copy_block(*function, extra) : copy_parameters(*function, parameters);
    CUctx_st& context = *get_stream(config.hStream).context;
    require(!function->loaded->context || function->loaded->context == &context, CUDA_ERROR_INVALID_HANDLE);
    function->program(&context);  // decoded now: what is not understood is this call's error
    const CUcontext owner = context_of(config.hStream);
    const auto multiprocessors =
        owner->green ? owner->green->multiprocessors : context.device->multiprocessors;
    Work work{CU_GRAPH_NODE_TYPE_KERNEL, nullptr};
    work.begin = [function, launch, &context, multiprocessors] {
        return std::make_shared<KernelRun>(function, launch, context, multiprocessors);
    };
    submit(config.hStream, std::move(work));
}

}  // namespace

namespace emu::driver {

Launch check_launch(const Function& function, const CUlaunchConfig& config)
{
    Launch launch;
    launch.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    launch.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    launch.dynamic_shared = config.sharedMemBytes;
    require(config.numAttrs == 0 || config.attrs, CUDA_ERROR_INVALID_VALUE);
    bool cluster_given = false;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        cluster_given = cluster_given || config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        read_attribute(config.attrs[i], launch);
    }
    check_block(function, launch);
    check_shared(function, launch);
    check_cluster(function, cluster_given, launch);
    return launch;
}

}  // namespace emu::driver

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** parameters, void** extra)
{
    return call("cuLaunchKernel", [&](CUctx_st&) {
        CUlaunchConfig config{};
        config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
        config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
        config.sharedMemBytes = shared;
        config.hStream = stream;
        launch(function, config, parameters, extra);
    });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra)
{
    return call("cuLaunchKernelEx", [&](CUctx_st&) {
        require(config != nullptr, CUDA_ERROR_INVALID_VALUE);
        launch(function, *config, parameters, extra);
    });
}
