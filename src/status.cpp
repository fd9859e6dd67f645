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

}  // namespace hg

extern "C" const char* hgemm_last_error(void) { return hg::error.text; }
extern "C" int hgemm_last_error_argument(void) { return hg::error.argument; }

extern "C" const char* hgemm_status_string(hgemm_status_t status)
{
    switch (status) {
    case HGEMM_STATUS_SUCCESS: return "HGEMM_STATUS_SUCCESS";
    case HGEMM_STATUS_NOT_INITIALIZED: return "HGEMM_STATUS_NOT_INITIALIZED";
    case HGEMM_STATUS_INVALID_ARGUMENT: return "HGEMM_STATUS_INVALID_ARGUMENT";
    case HGEMM_STATUS_NOT_SUPPORTED: return "HGEMM_STATUS_NOT_SUPPORTED";
    case HGEMM_STATUS_ALLOC_FAILED: return "HGEMM_STATUS_ALLOC_FAILED";
    case HGEMM_STATUS_NO_DEVICE: return "HGEMM_STATUS_NO_DEVICE";
    case HGEMM_STATUS_DRIVER_ERROR: return "HGEMM_STATUS_DRIVER_ERROR";
    case HGEMM_STATUS_LAUNCH_FAILED: return "HGEMM_STATUS_LAUNCH_FAILED";
    case HGEMM_STATUS_WORKSPACE_TOO_SMALL: return "HGEMM_STATUS_WORKSPACE_TOO_SMALL";
    case HGEMM_STATUS_INTERNAL: return "HGEMM_STATUS_INTERNAL";
    }
    return "unknown hgemm_status_t";
}
