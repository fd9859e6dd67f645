#include "options.hpp"

#include "environment.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

namespace hg {
namespace {

Status copy_variable(const char* name, char* text, size_t length)
{
    const char* value = environment(name);
    if (value && std::strlen(value) >= length)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "%s is longer than %zu characters", name, length - 1);
    std::strcpy(text, value ? value : "");
    return ok;
}

// The n of /split=<n>.
bool read_split(std::string_view setting, int& split)
{
    constexpr std::string_view name = "split=";
    if (!setting.starts_with(name))
        return false;
    const char* const end = setting.data() + setting.size();
    const auto [rest, error] = std::from_chars(setting.data() + name.size(), end, split);
    return error == std::errc{} && rest == end && split >= 1;
}

bool read_setting(std::string_view setting, Options& options)
{
    if (setting == "plain")
        options.orientation = Orientation::Plain;
    else if (setting == "swapped")
        options.orientation = Orientation::Swapped;
    else if (setting == "whole")
        options.sharing = Sharing::Whole;
    else if (setting == "stream")
        options.sharing = Sharing::Stream;
    else if (setting == "alone")
        options.overlap = Overlap::None;
    else if (setting == "late")
        options.overlap = Overlap::Late;
    else if (setting == "early")
        options.overlap = Overlap::Early;
    else
        return read_split(setting, options.split);
    return true;
}

// What follows the kernel's name: /split=<n>, /plain, /swapped, /whole, /stream, /alone, /late, /early.
Status read_kernel_settings(Options& options)
{
    char* rest = std::strchr(options.kernel, '/');
    while (rest) {
        *rest++ = '\0';
        const char* const setting = rest;
        rest = std::strchr(rest, '/');
        const size_t length = rest ? static_cast<size_t>(rest - setting) : std::strlen(setting);
        if (!read_setting({setting, length}, options))
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
