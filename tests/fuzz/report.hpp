// What a target says: each call before it is made, shown where HGEMM_FUZZ_PRINT is set or something is
// wrong.
#pragma once

#include <string_view>

namespace hg::fuzz {

[[gnu::format(printf, 1, 2)]] void note(const char* format, ...);

// Prints the notes of this input and what is wrong, and ends the program as a sanitizer does.
[[noreturn, gnu::format(printf, 1, 2)]] void wrong(const char* format, ...);

// Begins an input: forgets the notes.
void begin();

// Where both go, instead of standard error.
void report_to(int descriptor);

// One line of printable text, in UTF-8 or not.
bool is_one_line(std::string_view text);

}  // namespace hg::fuzz
