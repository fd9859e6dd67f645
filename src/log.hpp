// Log: what the user asked to see with HGEMM_LOG=error|plan|trace, on stderr or in HGEMM_LOG_FILE.
#pragma once

#include <cstdio>

namespace hg {

enum class LogLevel { Off, Error, Plan, Trace };

struct Log {
    LogLevel level;
    std::FILE* file;  // null: stderr

    bool wants(LogLevel wanted) const { return level >= wanted; }
    // Write one line, whole even when several threads write.
    [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) const noexcept;
};

// From the environment; an unknown level or a file that cannot be opened means Off and stderr.
Log open_log() noexcept;
void close_log(Log& log) noexcept;

}  // namespace hg
