#include "settings.hpp"

#include "hgemm_shim.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hg::shim {
namespace {

constexpr std::string_view mode_names[] = {"off", "on", "verify"};

std::string_view environment(const char* name)
{
    const char* value = secure_getenv(name);
    return value ? value : "";
}

struct Settings {
    std::atomic<Mode> mode = Mode::On;
    LogLevel level = LogLevel::Off;
    std::FILE* file = nullptr;
};

// Never destroyed: calls come while the process ends.
Settings& settings()
{
    static Settings& s = *new Settings;
    return s;
}

[[gnu::constructor]] void read_environment()
{
    set_mode(environment("HGEMM_SHIM"));
    const std::string_view level = environment("HGEMM_SHIM_LOG");
    if (level == "summary" || level == "calls")
        settings().level = level == "calls" ? LogLevel::Calls : LogLevel::Summary;
    const std::string_view path = environment("HGEMM_SHIM_LOG_FILE");
    if (settings().level != LogLevel::Off && !path.empty())
        settings().file = std::fopen(path.data(), "ae");
}

}  // namespace

Mode mode() { return settings().mode.load(std::memory_order_relaxed); }

bool set_mode(std::string_view text)
{
    for (const Mode mode : {Mode::Off, Mode::On, Mode::Verify})
        if (text == name_of(mode)) {
            settings().mode = mode;
            return true;
        }
    return false;
}

const char* name_of(Mode mode) { return mode_names[static_cast<int>(mode)].data(); }

bool logs(LogLevel level) { return settings().level >= level; }

void log_line(const char* format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    std::FILE* out = settings().file ? settings().file : stderr;
    std::fprintf(out, "hgemm-shim: %s\n", text);
    std::fflush(out);
}

}  // namespace hg::shim

extern "C" int hgemm_shim_set_mode(const char* mode) { return mode && hg::shim::set_mode(mode) ? 0 : -1; }
