#include "src/base/status.hpp"

#include "src/base/escape.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

namespace hg {
namespace {

struct ThreadError {
    char text[error_text_bytes];
    int argument;
    const char* function;
    std::optional<int64_t> problem;  // which of args->problems
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
    if (!has_control(error.text))
        return;
    char raw[sizeof error.text];
    std::strcpy(raw, error.text);
    escape(raw, error.text, sizeof error.text);
}

// The members of an entry of args->problems are checked by the names that they have in args.
int write_argument(int used, int position, std::string_view name) noexcept
{
    constexpr std::string_view args = "args->";
    char* const text = error.text + used;
    const size_t room = sizeof error.text - used;
    if (error.problem && name.starts_with(args))
        return std::snprintf(text, room, "argument %d (args->problems[%" PRId64 "].%s) ", position,
                             *error.problem, name.data() + args.size());
    return std::snprintf(text, room, "argument %d (%s) ", position, name.data());
}

}  // namespace

Status fail(Status status, const char* format, ...) noexcept
{
    int used = write_prefix();
    if (error.problem)
        used += std::snprintf(error.text + used, sizeof error.text - used,
                              "args->problems[%" PRId64 "]: ", *error.problem);
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
    used += write_argument(used, position, name);
    va_list values;
    va_start(values, format);
    write_rest(used, format, values);
    va_end(values);
    error.argument = position;
    return HGEMM_STATUS_INVALID_ARGUMENT;
}

Call::Call(const char* function) noexcept : outer_(error.function) { error.function = function; }
Call::~Call() { error.function = outer_; }

AtProblem::AtProblem(int64_t index) noexcept { error.problem = index; }
AtProblem::~AtProblem() { error.problem.reset(); }

KeptError::KeptError() noexcept : argument_(error.argument)
{
    std::memcpy(text_, error.text, sizeof text_);
}

KeptError::~KeptError()
{
    std::memcpy(error.text, text_, sizeof text_);
    error.argument = argument_;
}

const char* error_text() noexcept { return error.text; }
int error_argument() noexcept { return error.argument; }

}  // namespace hg
