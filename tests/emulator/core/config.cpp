// The device's description from environment variables.
#include "core/config.hpp"

#include <cstdlib>
#include <stdexcept>

namespace emu {
namespace {

const char* setting(const char* name)
{
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

uint64_t number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most)
{
    const char* text = setting(name);
    if (!text)
        return otherwise;
    char* end = nullptr;
    const uint64_t value = std::strtoull(text, &end, 0);
    if (*end || *text == '-' || value < least || value > most)
        throw std::runtime_error(std::string(name) + "=" + text + " is out of range");
    return value;
}

int architecture(const std::string& text)
{
    for (const int cc : {80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121}) {
        const std::string plain = "sm_" + std::to_string(cc);
        if (text == plain || text == plain + "a" || text == plain + "f")
            return cc;
    }
    throw std::runtime_error("EMU_ARCH=" + text + " is no architecture this emulator knows");
}

Strict strictness(const std::string& text)
{
    if (text != "0" && text != "1" && text != "defects")
        throw std::runtime_error("EMU_STRICT=" + text + " is neither 0 nor 1 nor defects");
    return text == "0" ? Strict::Off : text == "1" ? Strict::Document : Strict::Defects;
}

Start start_order(const std::string& text)
{
    if (text != "ascending" && text != "descending" && text != "random")
        throw std::runtime_error("EMU_START=" + text + " is neither ascending nor descending nor random");
    return text == "ascending" ? Start::Ascending : text == "random" ? Start::Random : Start::Descending;
}

// Opt-in shared memory per block, from the CUDA programming guide's table of technical specifications. 10.7
// is not in it: its multiprocessors have 228 KiB and an oversized configuration, which a kernel must ask
// for (cuda_occupancy.h of CUDA 13.5).
int shared_memory(int cc)
{
    switch (cc) {
    case 80:
    case 87:
    case 88: return 163 * 1024;
    case 86:
    case 89:
    case 120:
    case 121: return 99 * 1024;
    default: return 227 * 1024;
    }
}

}  // namespace

Config Config::from_environment()
{
    Config config;
    if (const char* name = setting("EMU_ARCH"))
        config.cc = architecture(name);
    config.sm_count = static_cast<int>(number("EMU_SM_COUNT", config.sm_count, 1, 1024));
    config.free_sms = static_cast<int>(number("EMU_FREE_SMS", config.free_sms, 0, 1024));
    if (const char* order = setting("EMU_START"))
        config.start = start_order(order);
    config.smem_optin = static_cast<int>(number("EMU_SMEM", shared_memory(config.cc), 1024, 16 << 20));
    config.memory = static_cast<int64_t>(number("EMU_MEMORY", config.memory, 0, INT64_MAX));
    config.check = static_cast<int>(number("EMU_CHECK", config.check, 0, 3));
    config.dependent = number("EMU_DEPENDENT", 0, 0, 1) == 1;
    config.overlap = number("EMU_OVERLAP", 0, 0, 1) == 1;
    config.seed = number("EMU_SEED", config.seed, 0, UINT64_MAX);
    if (const char* name = setting("EMU_ARITHMETIC")) {
        const std::string text = name;
        if (text != "exact" && text != "fast")
            throw std::runtime_error("EMU_ARITHMETIC=" + text + " is neither exact nor fast");
        config.arithmetic = text == "exact" ? Arithmetic::Exact : Arithmetic::Fast;
    }
    if (const char* name = setting("EMU_STRICT"))
        config.strict = strictness(name);
    if (const char* faults = setting("EMU_FAULTS"))
        config.faults = faults;
    return config;
}

std::vector<int> Config::architectures()
{
    std::vector<int> known;
    for (int cc = 50; cc < 200; ++cc)
        try {
            known.push_back(architecture("sm_" + std::to_string(cc)));
        } catch (const std::runtime_error&) {
        }
    return known;
}

}  // namespace emu
