// The environment variables of the shim, which a program may change at run time, and its log.
#pragma once

#include "hgemm.h"

#include <string_view>

namespace hg::shim {

enum class Serving { Off, On, Verify };

// What a call reads once, so that another thread may change it meanwhile.
struct Settings {
    Serving serving;    // HGEMM_SHIM
    hgemm_mode_t mode;  // HGEMM_SHIM_MODE
    bool strict;        // HGEMM_SHIM_STRICT
    bool syrk;          // HGEMM_SHIM_SYRK

    // Of the two modes in which bits depend on K alone.
    bool is_batch_invariant() const { return mode != HGEMM_MODE_DEFAULT; }
};
Settings current_settings();

// HGEMM_SHIM_LOG: each level contains the ones before it.
enum class LogLevel { Off, Summary, Calls };
bool logs(LogLevel level);

// The value of a variable; null if there is no such variable.
const char* value_of(std::string_view variable);
// False, and no change, if there is no such variable or value.
bool set(std::string_view variable, std::string_view value);

// Writes one line to stderr or to HGEMM_SHIM_LOG_FILE. Lines of several threads do not mix.
[[gnu::format(printf, 1, 2)]] void log_line(const char* format, ...);

}  // namespace hg::shim
