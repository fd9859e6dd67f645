#include "src/base/log.hpp"

#include "src/base/environment.hpp"
#include "src/base/escape.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace hg {
namespace {

constexpr size_t line_bytes = error_text_bytes + 128;

// One write() if the system takes the whole text.
void write_whole(int file, const char* text, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(file, text, length);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            text += written;
            length -= static_cast<size_t>(written);
        }
    }
}

bool read_level(LogLevel& level)
{
    constexpr const char* names[] = {"off", "error", "plan", "trace"};
    const char* const text = environment("HGEMM_LOG");
    level = LogLevel::Off;
    if (!text || !*text)
        return true;
    for (size_t i = 0; i < std::size(names); ++i)
        if (!std::strcmp(text, names[i])) {
            level = static_cast<LogLevel>(i);
            return true;
        }
    return false;
}

// Opens for appending; -1 with the reason. Does not wait for what is no file, such as a pipe without a
// reader.
int open_file(const char* path, const char*& reason)
{
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        reason = std::strerror(errno);
    } else if (!S_ISREG(status.st_mode)) {
        reason = "not a regular file";
    } else {
        return file;
    }
    if (file >= 0)
        close(file);
    return -1;
}

}  // namespace

void Log::line(const char* format, ...) const noexcept
{
    constexpr std::string_view prefix = "hgemm: ";
    char raw[line_bytes], text[prefix.size() + line_bytes + 1];
    va_list values;
    va_start(values, format);
    std::vsnprintf(raw, sizeof raw, format, values);
    va_end(values);
    std::memcpy(text, prefix.data(), prefix.size());
    char* const own = text + prefix.size();
    escape(raw, own, line_bytes);
    if (logger)
        return logger(data, own);
    std::strcat(own, "\n");
    if (file >= 0)
        write_whole(file, text, std::strlen(text));
    else
        std::fputs(text, stderr);
}

bool open_log_of_environment(Log& log) noexcept
{
    log = {};
    if (!read_level(log.level))
        return false;
    const char* const path = environment("HGEMM_LOG_FILE");
    if (log.level == LogLevel::Off || !path || !*path)
        return true;
    const char* reason = nullptr;
    const int file = open_file(path, reason);
    if (file < 0)
        log.line("'%.1024s' (HGEMM_LOG_FILE) cannot be written to: %s; the log goes on here", path, reason);
    log.file = file;
    return true;
}

void close_log(Log& log) noexcept
{
    if (log.file >= 0)
        close(log.file);
    log = {};
}

}  // namespace hg
