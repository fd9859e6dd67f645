#include "driver/faults.hpp"

#include "driver/errors.hpp"

#include <charconv>
#include <stdexcept>

namespace emu::driver {
namespace {

[[noreturn]] void refuse(const std::string& part, const std::string& why)
{
    throw std::invalid_argument("fault '" + part + "': " + why);
}

// call:number[+]=ERROR[!]
InjectedFault parse(const std::string& part)
{
    const size_t colon = part.find(':'), equals = part.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon)
        refuse(part, "expected call:number=ERROR");
    InjectedFault fault;
    fault.call = part.substr(0, colon);
    std::string number = part.substr(colon + 1, equals - colon - 1), error = part.substr(equals + 1);
    if (fault.onwards = number.ends_with('+'); fault.onwards)
        number.pop_back();
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), fault.number);
    if (code != std::errc() || end != number.data() + number.size() || fault.number == 0)
        refuse(part, "'" + number + "' is no number of a call");
    if (fault.loses_context = error.ends_with('!'); fault.loses_context)
        error.pop_back();
    if (!error_by_name("CUDA_ERROR_" + error, &fault.result))
        refuse(part, "there is no CUDA_ERROR_" + error);
    if (fault.call.substr(0, 2) != "cu")
        refuse(part, "'" + fault.call + "' is no entry point");
    return fault;
}

}  // namespace

void Faults::set(const std::string& specification)
{
    std::vector<InjectedFault> faults;
    for (size_t begin = 0; begin < specification.size();) {
        const size_t end = std::min(specification.find(',', begin), specification.size());
        if (end > begin)
            faults.push_back(parse(specification.substr(begin, end - begin)));
        begin = end + 1;
    }
    faults_ = std::move(faults);
    calls_.clear();
}

const InjectedFault* Faults::count(const std::string& call)
{
    const uint64_t number = ++calls_[call];
    for (const InjectedFault& fault : faults_)
        if (fault.call == call && (fault.number == number || (fault.onwards && fault.number < number)))
            return &fault;
    return nullptr;
}

uint64_t Faults::calls(const std::string& call) const
{
    const auto found = calls_.find(call);
    return found == calls_.end() ? 0 : found->second;
}

}  // namespace emu::driver
