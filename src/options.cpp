#include "options.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hg {
namespace {

Status copy_variable(const char* name, char* text, size_t length)
{
    const char* value = std::getenv(name);
    if (value && std::strlen(value) >= length)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "%s is longer than %zu characters", name, length - 1);
    std::strcpy(text, value ? value : "");
    return ok;
}

// What follows the kernel's name: /split=<n>, /plain, /swapped, /whole, /stream,
// /alone, /late, /early.
Status read_kernel_settings(Options& options)
{
    char* rest = std::strchr(options.kernel, '/');
    while (rest) {
        *rest++ = '\0';
        char* const setting = rest;
        rest = std::strchr(setting, '/');
        const auto length = rest ? static_cast<size_t>(rest - setting) : std::strlen(setting);
        const auto is = [&](const char* word) {
            return std::strlen(word) == length && !std::strncmp(setting, word, length);
        };
        if (is("plain"))
            options.orientation = Orientation::Plain;
        else if (is("swapped"))
            options.orientation = Orientation::Swapped;
        else if (is("whole"))
            options.sharing = Sharing::Whole;
        else if (is("stream"))
            options.sharing = Sharing::Stream;
        else if (is("alone"))
            options.overlap = Overlap::None;
        else if (is("late"))
            options.overlap = Overlap::Late;
        else if (is("early"))
            options.overlap = Overlap::Early;
        else if (std::sscanf(setting, "split=%d", &options.split) != 1 || options.split < 1)
            return fail(HGEMM_STATUS_NOT_SUPPORTED,
                        "unknown setting '%.*s' (HGEMM_KERNEL), known: split=<n> plain swapped whole "
                        "stream alone late early",
                        static_cast<int>(length), setting);
    }
    return ok;
}

}  // namespace

Status read_options(Options& options)
{
    Status status = copy_variable("HGEMM_BACKEND", options.backend, sizeof options.backend);
    if (status == ok)
        status = copy_variable("HGEMM_KERNEL", options.kernel, sizeof options.kernel);
    return status == ok ? read_kernel_settings(options) : status;
}

}  // namespace hg
