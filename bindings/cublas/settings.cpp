#include "settings.hpp"

#include "hgemm_shim.h"

#include "src/base/escape.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hg::shim {
namespace {

struct Setting {
    const char* variable;
    const char* values[4];  // null behind the last one
    std::atomic<int> now;   // index of a value
};

// Not created at run time: the program may call while libraries load, and while the process ends.
constinit Setting serving_setting{"HGEMM_SHIM", {"off", "on", "verify"}, static_cast<int>(Serving::On)};
// As hgemm_mode_t numbers them.
constinit Setting mode_setting{"HGEMM_SHIM_MODE", {"default", "batch-invariant", "tree"}, 0};
constinit Setting strict_setting{"HGEMM_SHIM_STRICT", {"off", "on", "0", "1"}, 0};  // odd: on
constinit Setting syrk_setting{"HGEMM_SHIM_SYRK", {"off", "on", "0", "1"}, 0};      // as well
constinit Setting log_setting{"HGEMM_SHIM_LOG", {"off", "summary", "calls"}, 0};
constinit Setting* const settings[] = {&serving_setting, &mode_setting, &strict_setting, &syrk_setting,
                                       &log_setting};

constinit std::atomic<int> log_file = STDERR_FILENO;
// HGEMM_SHIM_LOG_FILE, until it is opened.
constinit std::atomic<char*> log_path = nullptr;

int now(const Setting& setting) { return setting.now.load(std::memory_order_relaxed); }

Setting* find(std::string_view variable)
{
    for (Setting* setting : settings)
        if (variable == setting->variable)
            return setting;
    return nullptr;
}

bool set(Setting& setting, std::string_view value)
{
    for (int i = 0; i < 4 && setting.values[i]; ++i)
        if (value == setting.values[i]) {
            setting.now = i;
            return true;
        }
    return false;
}

// "off, on or verify"
std::string list_values(const Setting& setting)
{
    std::string text = setting.values[0];
    for (int i = 1; i < 4 && setting.values[i]; ++i)
        text += (i == 3 || !setting.values[i + 1] ? " or " : ", ") + std::string(setting.values[i]);
    return text;
}

const char* environment(const char* name)
{
    const char* value = secure_getenv(name);
    return value ? value : "";
}

// Opens the file; null, or why not. Does not wait for what is no file, such as a pipe without a reader.
const char* open_file(const char* path, std::atomic<int>& file)
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

// Opens the file as soon as there may be something to log.
void open_log()
{
    if (!logs(LogLevel::Summary) && !current_settings().strict)
        return;
    char* const path = log_path.exchange(nullptr);
    if (!path)
        return;
    if (const char* reason = open_file(path, log_file))
        log_line("'%s' (HGEMM_SHIM_LOG_FILE) cannot be written to: %s; the log goes on here", path, reason);
    std::free(path);
}

[[gnu::constructor]] void read_environment()
{
    for (Setting* setting : settings)
        if (const char* value = environment(setting->variable); *value && !set(*setting, value))
            log_line("%s is '%s', must be %s", setting->variable, value, list_values(*setting).c_str());
    if (const char* path = environment("HGEMM_SHIM_LOG_FILE"); *path)
        log_path = strdup(path);
    open_log();
}

}  // namespace

Settings current_settings()
{
    return {static_cast<Serving>(now(serving_setting)), static_cast<hgemm_mode_t>(now(mode_setting)),
            now(strict_setting) % 2 == 1, now(syrk_setting) % 2 == 1};
}

bool logs(LogLevel level) { return now(log_setting) >= static_cast<int>(level); }

const char* value_of(std::string_view variable)
{
    const Setting* setting = find(variable);
    return setting ? setting->values[now(*setting)] : nullptr;
}

bool set(std::string_view variable, std::string_view value)
{
    Setting* setting = find(variable);
    if (!setting || !set(*setting, value))
        return false;
    open_log();
    return true;
}

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
    const ssize_t written = write(log_file, line, length + 1);
    static_cast<void>(written);
}

}  // namespace hg::shim

extern "C" int hgemm_shim_set(const char* variable, const char* value)
{
    return variable && value && hg::shim::set(variable, value) ? 0 : -1;
}

extern "C" const char* hgemm_shim_get(const char* variable)
{
    return variable ? hg::shim::value_of(variable) : nullptr;
}

extern "C" int hgemm_shim_set_mode(const char* mode) { return hgemm_shim_set("HGEMM_SHIM", mode); }
