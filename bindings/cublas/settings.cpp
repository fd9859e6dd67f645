#include "settings.hpp"

#include "hgemm_shim.h"
#include "lazy.hpp"

#include "src/escape.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
    int file = -1;  // stderr
};

constinit Lazy<Settings> lazy_settings;
Settings& settings() { return lazy_settings.get(); }

// Opens the file; null, or why not. Does not wait for what is no file, such as a pipe without a reader.
const char* open_file(const char* path, int& file)
{
    const int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    if (opened < 0)
        return std::strerror(errno);
    struct stat status;
    if (fstat(opened, &status) == 0 && S_ISREG(status.st_mode)) {
        file = opened;
        return nullptr;
    }
    close(opened);
    return "not a regular file";
}

[[gnu::constructor]] void read_environment()
{
    const std::string_view mode = environment("HGEMM_SHIM"), level = environment("HGEMM_SHIM_LOG");
    if (!mode.empty() && !set_mode(mode))
        log_line("HGEMM_SHIM is '%s', must be off, on or verify", mode.data());
    if (level == "summary" || level == "calls")
        settings().level = level == "calls" ? LogLevel::Calls : LogLevel::Summary;
    else if (!level.empty())
        log_line("HGEMM_SHIM_LOG is '%s', must be summary or calls", level.data());
    const std::string_view path = environment("HGEMM_SHIM_LOG_FILE");
    if (settings().level == LogLevel::Off || path.empty())
        return;
    if (const char* reason = open_file(path.data(), settings().file))
        log_line("'%s' (HGEMM_SHIM_LOG_FILE) cannot be written to: %s; the log goes on here", path.data(),
                 reason);
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
    constexpr std::string_view prefix = "hgemm-shim: ";
    char raw[2560], line[prefix.size() + sizeof raw + 1];
    va_list values;
    va_start(values, format);
    std::vsnprintf(raw, sizeof raw, format, values);
    va_end(values);
    prefix.copy(line, prefix.size());
    escape(raw, line + prefix.size(), sizeof raw);
    const size_t length = std::strlen(line);
    line[length] = '\n';
    // One write(): other threads and processes append lines to the same file.
    const ssize_t written = write(settings().file >= 0 ? settings().file : STDERR_FILENO, line, length + 1);
    static_cast<void>(written);
}

}  // namespace hg::shim

extern "C" int hgemm_shim_set_mode(const char* mode) { return mode && hg::shim::set_mode(mode) ? 0 : -1; }
