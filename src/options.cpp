#include "options.hpp"

#include "environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
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
bool read_split(std::string_view value, int& split)
{
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, split);
    return error == std::errc{} && rest == end && split >= 1;
}

// Sets the enumerator that `value` names: names[i] is the one with the value i + 1, after Free.
template <typename Setting>
bool read_name(std::string_view value, std::initializer_list<std::string_view> names, Setting& setting)
{
    const auto found = std::find(names.begin(), names.end(), value);
    setting = static_cast<Setting>(1 + (found - names.begin()));
    return found != names.end();
}

bool read_setting(std::string_view text, Options& options)
{
    const size_t equals = text.find('=');
    if (equals == text.npos)
        return false;
    const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
    if (name == "split")
        return read_split(value, options.split);
    if (name == "swap_ab")
        return read_name(value, {"0", "1"}, options.swap_ab);
    if (name == "stream_k")
        return read_name(value, {"0", "1"}, options.stream_k);
    return name == "pdl" && read_name(value, {"off", "late", "early"}, options.pdl);
}

// What follows the kernel's name: /split=<n>, /swap_ab=0|1, /stream_k=0|1, /pdl=off|late|early.
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
                        "unknown setting '%.*s' (HGEMM_KERNEL), known: split=<n> swap_ab=0|1 "
                        "stream_k=0|1 pdl=off|late|early",
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
