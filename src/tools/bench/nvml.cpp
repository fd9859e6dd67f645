#include "src/tools/bench/nvml.hpp"

#include <dlfcn.h>

namespace hg::bench {

// Declarations follow nvml.h.
struct Nvml::Functions {
    int (*init)();
    int (*shutdown)();
    int (*system_driver_version)(char*, unsigned);
    int (*device_by_bus_id)(const char*, void**);
    int (*clock_info)(void*, int, unsigned*);
    int (*power_usage)(void*, unsigned*);
};

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

// The PCI address of CUDA device 0, by which NVML knows it whatever CUDA_VISIBLE_DEVICES says.
std::string bus_id()
{
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*get_bus_id)(char*, int, int) = nullptr;
    char text[32] = "";
    if (!cuda || !find(cuda, "cuDeviceGetPCIBusId", get_bus_id) || get_bus_id(text, sizeof text, 0) != 0)
        return "";
    return text;
}

}  // namespace

Nvml::Nvml()
{
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    auto f = std::make_unique<Functions>();
    if (find(library, "nvmlInit_v2", f->init) && find(library, "nvmlShutdown", f->shutdown) &&
        find(library, "nvmlSystemGetDriverVersion", f->system_driver_version) &&
        find(library, "nvmlDeviceGetHandleByPciBusId_v2", f->device_by_bus_id) &&
        find(library, "nvmlDeviceGetClockInfo", f->clock_info) &&
        find(library, "nvmlDeviceGetPowerUsage", f->power_usage) && f->init() == 0) {
        functions_ = std::move(f);
        if (functions_->device_by_bus_id(bus_id().c_str(), &device_) != 0)
            device_ = nullptr;
    }
}

Nvml::~Nvml()
{
    if (functions_)
        functions_->shutdown();
}

std::string Nvml::driver_version() const
{
    char text[96] = "";
    if (functions_)
        functions_->system_driver_version(text, sizeof text);
    return text;
}

int Nvml::sm_mhz() const
{
    constexpr int clock_sm = 1;
    unsigned mhz = 0;
    return device_ && functions_->clock_info(device_, clock_sm, &mhz) == 0 ? static_cast<int>(mhz) : 0;
}

double Nvml::watts() const
{
    unsigned milliwatts = 0;
    return device_ && functions_->power_usage(device_, &milliwatts) == 0 ? milliwatts / 1e3 : 0;
}

}  // namespace hg::bench
