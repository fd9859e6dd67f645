#include "src/plan/options.hpp"

#include "src/base/environment.hpp"
#include "src/base/status.hpp"

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

// The n of /split=<n> and /branches=<n>.
bool read_count(std::string_view value, int& count)
{
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, count);
    return error == std::errc{} && rest == end && count >= 1;
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
        return read_count(value, options.split);
    if (name == "branches")
        return read_count(value, options.branches);
    if (name == "swap_ab")
        return read_name(value, {"0", "1"}, options.swap_ab);
    if (name == "stream_k")
        return read_name(value, {"0", "1"}, options.stream_k);
    return name == "pdl" && read_name(value, {"off", "late", "early"}, options.pdl);
}

}  // namespace

bool read_kernel(std::string_view text, Options& options, std::string_view& unknown)
{
    const size_t length = std::min(text.find('/'), text.size());
    options.kernel[text.copy(options.kernel, std::min(length, sizeof options.kernel - 1))] = '\0';
    text.remove_prefix(length);
    while (!text.empty()) {
        text.remove_prefix(1);
        unknown = text.substr(0, text.find('/'));
        if (!read_setting(unknown, options))
            return false;
        text.remove_prefix(unknown.size());
    }
    return true;
}

Status read_options(Options& options)
{
    char kernel[128];  // with room for every setting
    Status status = copy_variable("HGEMM_BACKEND", options.backend, sizeof options.backend);
    if (status == ok)
        status = copy_variable("HGEMM_KERNEL", kernel, sizeof kernel);
    if (status != ok)
        return status;
    std::string_view unknown;
    if (read_kernel(kernel, options, unknown))
        return ok;
    return fail(HGEMM_STATUS_NOT_SUPPORTED,
                "unknown setting '%.*s' (HGEMM_KERNEL), known: split=<n> swap_ab=0|1 stream_k=0|1 "
                "pdl=off|late|early branches=<n>",
                static_cast<int>(unknown.size()), unknown.data());
}

}  // namespace hg
