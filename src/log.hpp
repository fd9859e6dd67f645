// Log: what the user asked to see, by hgemm_set_logger() or by HGEMM_LOG=error|plan|trace, then on standard
// error or in HGEMM_LOG_FILE.
#pragma once

#include "status.hpp"

namespace hg {

enum class LogLevel { Off, Error, Plan, Trace };

struct Log {
    LogLevel level = LogLevel::Off;
    int file = -1;  // descriptor; -1: standard error
    hgemm_logger_t logger = nullptr;
    void* data = nullptr;  // the logger's

    bool wants(LogLevel wanted) const { return level >= wanted; }
    // Write one line, whole even when several threads write, with room for any error's text.
    [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) const noexcept;
};

// By HGEMM_LOG, false where that is unknown, and HGEMM_LOG_FILE; where the file cannot be written to, a
// line on standard error says so and the log goes on there.
bool open_log_of_environment(Log& log) noexcept;
// By hgemm_set_logger() if that was called, else by the environment.
Status open_log(Log& log) noexcept;
void close_log(Log& log) noexcept;

}  // namespace hg
