// Log: lines for the user. hgemm_set_logger() sets where they go, else HGEMM_LOG=error|plan|trace asks for
// them on standard error or in HGEMM_LOG_FILE.
#pragma once

#include "src/base/status.hpp"

namespace hg {

enum class LogLevel { Off, Error, Plan, Trace };

struct Log {
    LogLevel level = LogLevel::Off;
    int file = -1;  // descriptor; -1: standard error
    hgemm_logger_t logger = nullptr;
    void* data = nullptr;  // passed to the logger

    bool wants(LogLevel wanted) const { return level >= wanted; }
    // Writes one line, with room for any error's text. Lines of several threads do not mix.
    [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) const noexcept;
};

// Sets the log by HGEMM_LOG and HGEMM_LOG_FILE; false if HGEMM_LOG has an unknown value. If the file cannot
// be written to, a line on standard error says so and the log goes on there.
bool open_log_of_environment(Log& log) noexcept;
// hgemm_set_logger().
Status set_logger(hgemm_log_level_t level, hgemm_logger_t logger, void* data);
// Sets the log by hgemm_set_logger() if that was called, else by the environment.
Status open_log(Log& log) noexcept;
void close_log(Log& log) noexcept;

}  // namespace hg
