// Green contexts: some of a device's multiprocessors, with streams of their own, in its primary context.
#include "driver/call.hpp"

#include <algorithm>
#include <cstring>

#if CUDA_VERSION >= 12050

using namespace emu::driver;

namespace {

// As the documentation of green contexts has it for each architecture.
struct Granularity {
    unsigned least, alignment;
};

Granularity sm_granularity(const emu::Config& config)
{
    return config.cc >= 90 ? Granularity{8, 8} : Granularity{4, 2};
}

// Which device a resource is of stands where only the driver looks.
struct Hidden {
    int device;
};

CUdevResource resource_of(const Device& device, unsigned sm_count)
{
    CUdevResource resource{};
    resource.type = CU_DEV_RESOURCE_TYPE_SM;
    const Hidden hidden{device.ordinal};
    std::memcpy(resource._internal_padding, &hidden, sizeof hidden);
    const auto [least, alignment] = sm_granularity(device.machine.config);
    resource.sm.smCount = sm_count;
    resource.sm.minSmPartitionSize = least;
    resource.sm.smCoscheduledAlignment = alignment;
    return resource;
}

Device& device_of(const CUdevResource& resource)
{
    require(resource.type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
    Hidden hidden;
    std::memcpy(&hidden, resource._internal_padding, sizeof hidden);
    return get_device(hidden.device);
}

unsigned all_of(const Device& device) { return static_cast<unsigned>(device.machine.config.sm_count); }

CUdevResource resource_of(const CUctx_st& context, CUdevResourceType type)
{
    require(type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
    return resource_of(*context.device, context.green ? context.green->sm_count : all_of(*context.device));
}

void split(CUdevResource* groups, unsigned& count, const CUdevResource& input, CUdevResource* remaining,
           unsigned wanted)
{
    const Device& device = device_of(input);
    const auto [least, alignment] = sm_granularity(device.machine.config);
    require(wanted <= input.sm.smCount, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    const unsigned size = (std::max(wanted, least) + alignment - 1) / alignment * alignment;
    const unsigned there_are = input.sm.smCount / size;
    count = groups ? std::min(count, there_are) : there_are;
    for (unsigned i = 0; groups && i < count; ++i)
        groups[i] = resource_of(device, size);
    if (!remaining)
        return;
    *remaining = resource_of(device, input.sm.smCount - count * size);
    if (remaining->sm.smCount == 0)
        remaining->type = CU_DEV_RESOURCE_TYPE_INVALID;
}

CUgreenCtx create(CUdevResourceDesc handle, Device& device)
{
    Driver& d = driver();
    const auto description = d.descriptions.get(handle);
    require(description->device == &device, CUDA_ERROR_INVALID_DEVICE);
    auto green = std::make_shared<CUgreenCtx_st>();
    green->primary = &retain_primary(device);
    green->sm_count = description->sm_count;
    green->multiprocessors =
        make_multiprocessors(device.machine.config, static_cast<int>(description->sm_count));
    green->converted = d.contexts.emplace_back(std::make_unique<CUctx_st>()).get();
    green->converted->device = &device;
    green->converted->id = d.next_id++;
    green->converted->green = green.get();
    return d.greens.add(std::move(green));
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type)
{
    return call("cuDeviceGetDevResource", Needs::Driver, [&] {
        require(type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
        const Device& d = get_device(device);
        out(resource) = resource_of(d, all_of(d));
    });
}

CUresult cuCtxGetDevResource(CUcontext context, CUdevResource* resource, CUdevResourceType type)
{
    return call("cuCtxGetDevResource", Needs::Driver,
                [&] { out(resource) = resource_of(get_context(context), type); });
}

extern "C" CUresult cuStreamGetDevResource(CUstream stream, CUdevResource* resource, CUdevResourceType type)
{
    return call("cuStreamGetDevResource",
                [&](CUctx_st&) { out(resource) = resource_of(*context_of(stream), type); });
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned* count, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned flags, unsigned wanted)
{
    return call("cuDevSmResourceSplitByCount", Needs::Driver, [&] {
        require(input != nullptr, CUDA_ERROR_INVALID_VALUE);
        if (flags != 0)
            throw Failure{CUDA_ERROR_NOT_SUPPORTED,
                          "flags of cuDevSmResourceSplitByCount are not emulated"};
        split(groups, out(count), *input, remaining, wanted);
    });
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count)
{
    return call("cuDevResourceGenerateDesc", Needs::Driver, [&] {
        require(resources && count > 0, CUDA_ERROR_INVALID_VALUE);
        auto described = std::make_shared<CUdevResourceDesc_st>();
        described->device = &device_of(resources[0]);
        for (unsigned i = 0; i < count; ++i) {
            require(&device_of(resources[i]) == described->device,
                    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
            described->sm_count += resources[i].sm.smCount;
        }
        out(description) = driver().descriptions.add(std::move(described));
    });
}

CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc description, CUdevice device, unsigned flags)
{
    return call("cuGreenCtxCreate", Needs::Driver, [&] {
        require(green && flags == CU_GREEN_CTX_DEFAULT_STREAM, CUDA_ERROR_INVALID_VALUE);
        *green = create(description, get_device(device));
    });
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
    return call("cuGreenCtxDestroy", Needs::Driver, [&] {
        const auto green = driver().greens.get(handle);
        green->converted->live = false;
        driver().greens.remove(handle);
        release_primary(*green->primary->device);
    });
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx handle, unsigned flags, int priority)
{
    return call("cuGreenCtxStreamCreate", Needs::Driver, [&] {
        require(flags == CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
        create_stream(stream, flags, priority, *driver().greens.get(handle)->converted);
    });
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource, CUdevResourceType type)
{
    return call("cuGreenCtxGetDevResource", Needs::Driver,
                [&] { out(resource) = resource_of(*driver().greens.get(handle)->converted, type); });
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx handle)
{
    return call("cuCtxFromGreenCtx", Needs::Driver,
                [&] { out(context) = driver().greens.get(handle)->converted; });
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green)
{
    return call("cuStreamGetCtx", [&](CUctx_st&) {
        const CUctx_st& owner = *context_of(stream);
        out(green) = owner.green;
        out(context) = owner.green ? owner.green->primary : context_of(stream);
    });
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* green)
{
    return call("cuStreamGetGreenCtx", [&](CUctx_st&) { out(green) = context_of(stream)->green; });
}

#endif
