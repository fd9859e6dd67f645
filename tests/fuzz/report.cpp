#include "report.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace hg::fuzz {
namespace {

std::vector<std::string> notes;
int out = 2;

std::string print(const char* format, va_list values)
{
    char text[1024];
    std::vsnprintf(text, sizeof text, format, values);
    return text;
}

}  // namespace

void note(const char* format, ...)
{
    va_list values;
    va_start(values, format);
    notes.push_back(print(format, values));
    va_end(values);
    static const bool shown = std::getenv("HGEMM_FUZZ_PRINT") != nullptr;
    if (shown)
        dprintf(out, "  %s\n", notes.back().c_str());
}

void wrong(const char* format, ...)
{
    va_list values;
    va_start(values, format);
    const std::string what = print(format, values);
    va_end(values);
    for (const std::string& line : notes)
        dprintf(out, "  %s\n", line.c_str());
    dprintf(out, "WRONG: %s\n", what.c_str());
    std::abort();
}

void begin() { notes.clear(); }

void report_to(int descriptor) { out = descriptor; }

bool is_one_line(std::string_view text)
{
    return std::ranges::none_of(text, [](unsigned char c) { return c < 32 || c == 127; });
}

}  // namespace hg::fuzz
