#include "command/refused.hpp"

#include "core/config.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace emu::command {

void print_refused()
{
    fmt::print("instructions:\n");
#define EMU_REFUSED(what, example) fmt::print("  {}\n", what);
#include "ops/refused.def"
    fmt::print("entry points of the driver:\n");
#define EMU_UNSUPPORTED(name) fmt::print("  {}\n", #name);
#include "driver/unsupported.def"
#undef EMU_UNSUPPORTED
    fmt::print("functions of the runtime:\n");
#define EMU_UNSUPPORTED(name) fmt::print("  {}\n", #name);
#include "runtime/unsupported.def"
    fmt::print(
        "All others of the driver and the runtime that are not exported are refused by the linker.\n");
}

void print_devices()
{
    fmt::print("{:<8} {:>10} {:>22} {}\n", "--arch", "capability", "shared memory a block", "clusters");
    for (const int cc : Config::architectures()) {
        const std::string name = fmt::format("sm_{}", cc);
        setenv("EMU_ARCH", name.c_str(), 1);
        unsetenv("EMU_SMEM");
        fmt::print("{:<8} {:>10} {:>22} {}\n", name, fmt::format("{}.{}", cc / 10, cc % 10),
                   Config::from_environment().smem_optin, cc >= 90 ? "yes" : "no");
    }
}

}  // namespace emu::command
