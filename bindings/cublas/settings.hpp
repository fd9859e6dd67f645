// The environment variables of the shim, and its log.
#pragma once

#include <string_view>

namespace hg::shim {

enum class Mode { Off, On, Verify };
Mode mode();
bool set_mode(std::string_view text);
const char* name_of(Mode mode);

// HGEMM_SHIM_LOG: each level contains the ones before it.
enum class LogLevel { Off, Summary, Calls };
bool logs(LogLevel level);

// Writes one line to stderr or to HGEMM_SHIM_LOG_FILE. Lines of several threads do not mix.
[[gnu::format(printf, 1, 2)]] void log_line(const char* format, ...);

}  // namespace hg::shim
