#include "driver/events.hpp"

#include "core/report.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace emu::driver {

// In one piece, as a program's processes may share the file.
void write_event(const std::string& json)
{
    const char* name = std::getenv("EMU_JSON");
    if (!name || !*name)
        return;
    const std::string line = json + "\n";
    const int file = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        std::fprintf(stderr, "EMU_JSON: cannot write %s\n", name);
    if (file >= 0)
        close(file);
}

void complain(const char* call, const std::string& text)
{
    std::fprintf(stderr, "emulated %s: %s\n", call, text.c_str());
    write_event(json_event("error", call, text));
}

}  // namespace emu::driver
