// Libraries and modules: loading images and finding kernels and variables in them.
#include "driver/attributes.hpp"
#include "driver/call.hpp"
#include "driver/image.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

using namespace emu::driver;

namespace emu::driver {

LoadedModule& Loaded::in(CUcontext asking)
{
    for (Instance& instance : instances) {
        if (instance.device != asking->device)
            continue;
        if (!instance.owner)
            instance.owner = asking;
        if (instance.owner == asking || instance.module->module().globals.empty())
            return *instance.module;
    }
    const ptx::Module& first = instances.front().module->module();
    auto module = std::make_shared<LoadedModule>(asking->device->machine, first.text, first.file);
    return *instances.emplace_back(Instance{asking->device, asking, std::move(module)}).module;
}

const Program& Function::program(CUcontext context) const
{
    const Program* program = loaded->in(context).find(kernel->name);
    require(program != nullptr, CUDA_ERROR_NOT_FOUND);
    return *program;
}

}  // namespace emu::driver

namespace {

// The options of the compiler that have a meaning here: where messages go.
struct Log {
    char* text = nullptr;
    size_t bytes = 0;

    Log(unsigned count, const CUjit_option* options, void* const* values)
    {
        for (unsigned i = 0; i < count; ++i)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
                text = static_cast<char*>(values[i]);
            else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
                bytes = reinterpret_cast<size_t>(values[i]);
    }
    void write(const char* message) const
    {
        if (text && bytes > 0)
            std::snprintf(text, bytes, "%s", message);
    }
};

Device& any_device()
{
    require(!driver().devices.empty(), CUDA_ERROR_NO_DEVICE);
    return *driver().devices.front();
}

// Programs that create one handle after the other load the same images again and again.
std::shared_ptr<emu::LoadedModule> parse(Device& device, const Ptx& ptx)
{
    constexpr size_t kept = 32;
    auto& parsed = driver().parsed;
    for (const Parsed& known : parsed)
        if (known.device == &device && known.module->module().text == ptx.text)
            return known.module;
    std::string file = "image" + std::to_string(driver().next_id++) + "." + ptx.target + ".ptx";
    auto module =
        std::make_shared<emu::LoadedModule>(device.machine, std::string(ptx.text), std::move(file));
    if (const std::string note = module->newer_version();
        !note.empty() && !std::exchange(driver().version_told, true))
        std::fprintf(stderr, "%s\n", note.c_str());
    if (module->module().globals.empty()) {
        if (parsed.size() == kept)
            parsed.erase(parsed.begin());
        parsed.push_back({&device, module});
    }
    return module;
}

// Parsed at once, so that a wrong image is refused here; a wrong body of a kernel is by its first launch.
std::shared_ptr<Loaded> load(const void* image, Device& device, const Log& log)
{
    auto loaded = std::make_shared<Loaded>();
    try {
        loaded->instances.push_back(
            {&device, nullptr, parse(device, choose_ptx(image, device.machine.config.cc))});
    } catch (const emu::ptx::Error& error) {
        log.write(error.what());
        throw;
    }
    return loaded;
}

std::shared_ptr<Loaded> find_loaded(const void* handle)
{
    const auto library = driver().libraries.find(handle);
    return library ? library : driver().modules.get(handle);
}

const emu::ptx::Kernel* find_kernel(const Loaded& loaded, const char* name)
{
    require(name != nullptr, CUDA_ERROR_INVALID_VALUE);
    for (const emu::ptx::Kernel& kernel : loaded.instances.front().module->module().kernels)
        if (kernel.name == name)
            return &kernel;
    throw Failure{CUDA_ERROR_NOT_FOUND, ""};
}

// One handle for each kernel, however often it is asked for.
Function* get_function(const std::shared_ptr<Loaded>& loaded, const emu::ptx::Kernel& kernel)
{
    Function* known = nullptr;
    driver().functions.for_each([&](Function& function) {
        if (function.loaded == loaded && function.kernel->name == kernel.name)
            known = &function;
    });
    if (known)
        return known;
    auto function = std::make_shared<Function>();
    function->loaded = loaded;
    function->kernel = &kernel;
    function->max_dynamic_shared = std::max(0, smem_per_block - static_cast<int>(kernel.shared_bytes));
    std::copy(kernel.cluster, kernel.cluster + 3, function->cluster);
    return driver().functions.add(std::move(function));
}

void unload(emu::driver::Registry<Loaded>& from, const void* handle)
{
    const auto loaded = from.get(handle);
    driver().functions.remove_if([&](const Function& function) { return function.loaded == loaded; });
    from.remove(handle);
}

void get_global(Loaded& loaded, CUcontext context, const char* name, CUdeviceptr* pointer, size_t* bytes)
{
    require(name && (pointer || bytes), CUDA_ERROR_INVALID_VALUE);
    size_t size = 0;
    void* variable = loaded.in(context).global(name, &size);
    require(variable != nullptr, CUDA_ERROR_NOT_FOUND);
    if (pointer)
        *pointer = address(variable);
    if (bytes)
        *bytes = size;
}

void load_module(CUmodule* module, const void* image, CUctx_st& context, const Log& log)
{
    require(module != nullptr, CUDA_ERROR_INVALID_VALUE);
    forbid_in_capture();
    auto loaded = load(image, *context.device, log);
    loaded->context = &context;
    *module = reinterpret_cast<CUmodule>(driver().modules.add(std::move(loaded)));
}

std::string read_file(const char* name)
{
    require(name != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::ifstream file(name, std::ios::binary);
    require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

// ---- Libraries --------------------------------------------------------------------------------------
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                           unsigned count, CUlibraryOption*, void**, unsigned)
{
    return call("cuLibraryLoadData", Needs::Driver, [&] {
        require(library != nullptr, CUDA_ERROR_INVALID_VALUE);
        auto loaded = load(image, any_device(), Log(count, options, values));
        *library = reinterpret_cast<CUlibrary>(driver().libraries.add(std::move(loaded)));
    });
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return call("cuLibraryUnload", Needs::Driver, [&] { unload(driver().libraries, library); });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name)
{
    return call("cuLibraryGetKernel", Needs::Driver, [&] {
        require(kernel != nullptr, CUDA_ERROR_INVALID_VALUE);
        const auto loaded = driver().libraries.get(library);
        *kernel = reinterpret_cast<CUkernel>(get_function(loaded, *find_kernel(*loaded, name)));
    });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library)
{
    return call("cuLibraryGetModule", [&](CUctx_st&) {
        out(module) = reinterpret_cast<CUmodule>(driver().libraries.get(library).get());
    });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUlibrary library, const char* name)
{
    return call("cuLibraryGetGlobal", [&](CUctx_st& context) {
        get_global(*driver().libraries.get(library), &context, name, pointer, bytes);
    });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel)
{
    return call("cuKernelGetFunction", [&](CUctx_st&) {
        out(function) = reinterpret_cast<CUfunction>(driver().functions.get(kernel).get());
    });
}

// ---- Modules ----------------------------------------------------------------------------------------
CUresult cuModuleLoadData(CUmodule* module, const void* image)
{
    return call("cuModuleLoadData",
                [&](CUctx_st& context) { load_module(module, image, context, Log(0, nullptr, nullptr)); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values)
{
    return call("cuModuleLoadDataEx", [&](CUctx_st& context) {
        load_module(module, image, context, Log(count, options, values));
    });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image)
{
    return call("cuModuleLoadFatBinary",
                [&](CUctx_st& context) { load_module(module, image, context, Log(0, nullptr, nullptr)); });
}

CUresult cuModuleLoad(CUmodule* module, const char* name)
{
    return call("cuModuleLoad", [&](CUctx_st& context) {
        load_module(module, read_file(name).c_str(), context, Log(0, nullptr, nullptr));
    });
}

CUresult cuModuleUnload(CUmodule module)
{
    return call("cuModuleUnload", [&](CUctx_st&) {
        forbid_in_capture();
        finish_everything();
        unload(driver().modules, module);
    });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    return call("cuModuleGetFunction", [&](CUctx_st&) {
        require(function != nullptr, CUDA_ERROR_INVALID_VALUE);
        const auto loaded = find_loaded(module);
        *function = reinterpret_cast<CUfunction>(get_function(loaded, *find_kernel(*loaded, name)));
    });
}

CUresult cuModuleGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUmodule module, const char* name)
{
    return call("cuModuleGetGlobal", [&](CUctx_st& context) {
        get_global(*find_loaded(module), &context, name, pointer, bytes);
    });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode)
{
    return call("cuModuleGetLoadingMode", Needs::Driver, [&] { out(mode) = CU_MODULE_EAGER_LOADING; });
}
