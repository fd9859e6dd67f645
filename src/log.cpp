#include "log.hpp"

#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace hg {

void Log::line(const char* format, ...) const noexcept
{
    char text[1024];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    std::FILE* out = file ? file : stderr;
    std::fprintf(out, "hgemm: %s\n", text);
    std::fflush(out);
}

Log open_log() noexcept
{
    Log log{LogLevel::Off, nullptr};
    const char* level = std::getenv("HGEMM_LOG");
    if (!level)
        return log;
    if (!std::strcmp(level, "error"))
        log.level = LogLevel::Error;
    else if (!std::strcmp(level, "plan"))
        log.level = LogLevel::Plan;
    else if (!std::strcmp(level, "trace"))
        log.level = LogLevel::Trace;
    const char* path = std::getenv("HGEMM_LOG_FILE");
    if (log.level != LogLevel::Off && path && *path)
        log.file = std::fopen(path, "ae");
    return log;
}

void close_log(Log& log) noexcept
{
    if (log.file)
        std::fclose(log.file);
    log = {LogLevel::Off, nullptr};
}

}  // namespace hg
