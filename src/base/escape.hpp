// Makes text with values from outside safe to print.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace hg {

inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

inline bool has_control(std::string_view text) { return std::ranges::any_of(text, is_control); }

// Replaces control characters by \x0a and the like, so that a line stays one line; cut to `length` bytes
// with the NUL.
inline void escape(std::string_view text, char* to, size_t length)
{
    size_t used = 0;
    for (const char c : text) {
        const size_t needed = is_control(c) ? 4 : 1;
        if (used + needed >= length)
            break;
        if (needed == 1)
            to[used] = c;
        else
            std::snprintf(to + used, length - used, "\\x%02x", static_cast<unsigned char>(c));
        used += needed;
    }
    to[used] = '\0';
}

}  // namespace hg
