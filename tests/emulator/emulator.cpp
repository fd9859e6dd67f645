// Loaded modules: memory of the globals, kernels decoded when they are first asked for.
#include "emulator.hpp"

#include "ptx/lexer.hpp"

#include <algorithm>

namespace emu {
namespace {

const ptx::Variable* find_global(const ptx::Module& module, const std::string& name)
{
    const auto found = std::find_if(module.globals.begin(), module.globals.end(),
                                    [&](const ptx::Variable& v) { return v.name == name; });
    return found == module.globals.end() ? nullptr : &*found;
}

// "sm_90a" -> 90.
int target_of(const ptx::Module& module)
{
    const size_t digits = module.target.find_first_of("0123456789");
    return digits == std::string::npos ? 0 : std::atoi(module.target.c_str() + digits);
}

// PTX runs on its own architecture and later ones; with the suffix a on that one alone, with f on those of
// the same major number.
void check_target(const ptx::Module& module, int cc)
{
    const int target = target_of(module);
    const char suffix = module.target.back();
    const bool runs = suffix == 'a'   ? cc == target
                      : suffix == 'f' ? cc >= target && cc / 10 == target / 10
                                      : cc >= target;
    if (!runs)
        throw ptx::Error(ptx::quote(
            module, 0, ".target " + module.target + " does not run on sm_" + std::to_string(cc)));
}

}  // namespace

LoadedModule::LoadedModule(Machine& machine, std::string text, std::string file)
    : machine_(machine), module_(ptx::parse(std::move(text), std::move(file)))
{
    check_target(module_, machine.config.cc);
    for (const ptx::Variable& variable : module_.globals) {
        if (variable.external)
            throw ptx::Error(module_.file + ": variable '" + variable.name + "' is not defined");
        const auto bytes = static_cast<size_t>(std::max<int64_t>(1, variable.bytes));
        void* base = machine.memory.allocate(bytes, std::max(16, variable.alignment));
        if (!base)
            throw std::bad_alloc();
        std::memset(base, 0, bytes);
        std::copy(variable.initial.begin(), variable.initial.end(), static_cast<uint8_t*>(base));
        global_address_.push_back(reinterpret_cast<uint64_t>(base));
    }
    for (size_t i = 0; i < module_.globals.size(); ++i)
        for (const auto& reference : module_.globals[i].references) {
            const ptx::Variable* target = find_global(module_, reference.name);
            if (!target)
                throw ptx::Error(module_.file + ": no variable '" + reference.name +
                                 "' for an initial value");
            uint64_t value;
            void* at = reinterpret_cast<void*>(global_address_[i] + reference.at);
            std::memcpy(&value, at, sizeof value);
            value += global_address_[target - module_.globals.data()];
            std::memcpy(at, &value, sizeof value);
        }
}

LoadedModule::~LoadedModule()
{
    for (const uint64_t address : global_address_)
        machine_.memory.release(reinterpret_cast<void*>(address));
}

std::string LoadedModule::newer_version() const
{
    constexpr int newest = 90;
    const auto text = [](int version) {
        return std::to_string(version / 10) + "." + std::to_string(version % 10);
    };
    if (module_.version <= newest)
        return "";
    return module_.file + ": .version " + text(module_.version) + " is newer than PTX " + text(newest) +
           ", which the emulator knows; what is new in it is refused where a kernel uses it";
}

const ptx::Kernel* LoadedModule::kernel(const std::string& name) const
{
    const auto found = std::find_if(module_.kernels.begin(), module_.kernels.end(),
                                    [&](const ptx::Kernel& k) { return k.name == name; });
    if (found == module_.kernels.end())
        return nullptr;
    ptx::read_body(module_, *found);
    return &*found;
}

const Program* LoadedModule::find(const std::string& name) const
{
    const auto known = programs_.find(name);
    if (known != programs_.end())
        return known->second.get();
    const ptx::Kernel* found = kernel(name);
    if (!found)
        return nullptr;
    auto program = std::make_unique<Program>(decode(module_, *found, global_address_));
    return (programs_[name] = std::move(program)).get();
}

void* LoadedModule::global(const std::string& name, size_t* bytes) const
{
    const ptx::Variable* variable = find_global(module_, name);
    if (!variable)
        return nullptr;
    if (bytes)
        *bytes = static_cast<size_t>(variable->bytes);
    return reinterpret_cast<void*>(global_address_[variable - module_.globals.data()]);
}

std::vector<std::string> list_refused(std::string text, std::string file)
{
    std::vector<std::string> refused;
    try {
        ptx::Module module = ptx::parse(std::move(text), std::move(file), &refused);
        for (ptx::Kernel& kernel : module.kernels) {
            ptx::read_body(module, kernel, &refused);
            const std::vector<uint64_t> nowhere(module.globals.size());
            for (std::string& why : refusals(module, kernel, nowhere))
                refused.push_back(std::move(why));
        }
    } catch (const ptx::Error& error) {  // nothing behind this can be read
        refused.push_back(error.what());
    }
    return refused;
}

}  // namespace emu
