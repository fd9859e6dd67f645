#include "status.hpp"

#include <cstdarg>
#include <cstdio>

namespace hg {
namespace {

struct ThreadError {
    char text[2304];  // holds the names of all kernels
    int argument;
    const char* function;
};

thread_local ThreadError error;

int write_prefix() noexcept
{
    if (!error.function) {
        error.text[0] = '\0';
        return 0;
    }
    return std::snprintf(error.text, sizeof error.text, "%s: ", error.function);
}

void write_rest(int used, const char* format, va_list values) noexcept
{
    if (used >= 0 && used < static_cast<int>(sizeof error.text))
        std::vsnprintf(error.text + used, sizeof error.text - used, format, values);
}

}  // namespace

Status fail(Status status, const char* format, ...) noexcept
{
    const int used = write_prefix();
    va_list values;
    va_start(values, format);
    write_rest(used, format, values);
    va_end(values);
    error.argument = 0;
    return status;
}

Status fail_argument(int position, const char* name, const char* format, ...) noexcept
{
    int used = write_prefix();
    used += std::snprintf(error.text + used, sizeof error.text - used, "argument %d (%s) ", position, name);
    va_list values;
    va_start(values, format);
    write_rest(used, format, values);
    va_end(values);
    error.argument = position;
    return HGEMM_STATUS_INVALID_ARGUMENT;
}

Call::Call(const char* function) noexcept : outer_(error.function) { error.function = function; }
Call::~Call() { error.function = outer_; }

const char* error_text() noexcept { return error.text; }
int error_argument() noexcept { return error.argument; }

}  // namespace hg
