// Initialisation and devices.
#include "driver/attributes.hpp"
#include "driver/call.hpp"
#include "driver/events.hpp"

#include <cstdlib>
#include <cstring>

using namespace emu::driver;

namespace {

int device_count()
{
    const char* text = std::getenv("EMU_DEVICES");
    if (!text)
        return 1;
    char* end = nullptr;
    const long count = std::strtol(text, &end, 10);
    if (end == text || *end || count < 0 || count > 8)
        throw Failure{CUDA_ERROR_INVALID_VALUE,
                      "EMU_DEVICES is '" + std::string(text) + "', must be 0 to 8"};
    return static_cast<int>(count);
}

void initialise()
{
    Driver& d = driver();
    if (d.initialised)
        return;
    d.config = emu::Config::from_environment();
    for (int ordinal = 0, count = device_count(); ordinal < count; ++ordinal)
        d.devices.push_back(std::make_unique<Device>(ordinal, d.config));
    d.initialised = true;
    write_event(emu::json_event("device", "sm_" + std::to_string(d.config.cc),
                                std::to_string(d.devices.size()) + " of them"));
}

}  // namespace

namespace emu::driver {

Device::Device(int ordinal, const Config& config)
    : ordinal(ordinal), machine(config), multiprocessors(make_multiprocessors(config, config.sm_count))
{
}

std::shared_ptr<Multiprocessors> make_multiprocessors(const Config& config, int count)
{
    const auto get = [&](CUdevice_attribute which) {
        return static_cast<uint64_t>(device_attribute(which, config, 0));
    };
    return std::make_shared<Multiprocessors>(config.free_of(count), get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
                                             get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
}

Device& get_device(CUdevice device)
{
    const auto& devices = driver().devices;
    require(device >= 0 && static_cast<size_t>(device) < devices.size(), CUDA_ERROR_INVALID_DEVICE);
    return *devices[static_cast<size_t>(device)];
}

}  // namespace emu::driver

CUresult cuInit(unsigned flags)
{
    return call("cuInit", Needs::Nothing, [&] {
        require(flags == 0, CUDA_ERROR_INVALID_VALUE);
        initialise();
    });
}

CUresult cuDriverGetVersion(int* version)
{
    return call("cuDriverGetVersion", Needs::Nothing, [&] { out(version) = CUDA_VERSION; });
}

CUresult cuDeviceGetCount(int* count)
{
    return call("cuDeviceGetCount", Needs::Driver,
                [&] { out(count) = static_cast<int>(driver().devices.size()); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal)
{
    return call("cuDeviceGet", Needs::Driver, [&] { out(device) = get_device(ordinal).ordinal; });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device)
{
    return call("cuDeviceGetName", Needs::Driver, [&] {
        require(name && length > 0, CUDA_ERROR_INVALID_VALUE);
        const std::string text = "emulated sm_" + std::to_string(get_device(device).machine.config.cc);
        const size_t copied = std::min(text.size(), static_cast<size_t>(length) - 1);
        std::memcpy(name, text.data(), copied);
        name[copied] = '\0';
    });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device)
{
    return call("cuDeviceGetUuid", Needs::Driver, [&] {
        std::memset(out(uuid).bytes, 0, sizeof uuid->bytes);
        std::memcpy(uuid->bytes, "emulated", 8);
        uuid->bytes[15] = static_cast<char>(get_device(device).ordinal);
    });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device)
{
    return call("cuDeviceGetPCIBusId", Needs::Driver, [&] {
        require(text && length >= 13, CUDA_ERROR_INVALID_VALUE);
        std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", get_device(device).ordinal + 1);
    });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device)
{
    return call("cuDeviceTotalMem", Needs::Driver,
                [&] { out(bytes) = static_cast<size_t>(get_device(device).machine.memory.limit()); });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device)
{
    return call("cuDeviceGetAttribute", Needs::Driver, [&] {
        const Device& d = get_device(device);
        out(value) = device_attribute(attribute, d.machine.config, d.ordinal);
    });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device)
{
    return call("cuDeviceComputeCapability", Needs::Driver, [&] {
        const int cc = get_device(device).machine.config.cc;
        out(major) = cc / 10;
        out(minor) = cc % 10;
    });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer)
{
    return call("cuDeviceCanAccessPeer", Needs::Driver, [&] {
        get_device(device), get_device(peer);
        out(can) = 0;
    });
}
