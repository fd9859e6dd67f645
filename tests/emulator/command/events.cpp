#include "command/events.hpp"

#include "core/report.hpp"

#include <fmt/format.h>

#include <fstream>

namespace emu::command {
namespace {

std::string times(int count, const char* one, const char* many)
{
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

Events read_events(const std::string& file)
{
    Events events;
    const std::pair<std::string, int&> classes[] = {
        {"device", events.devices},   {"kernel", events.kernels}, {"error", events.errors},
        {"fault", events.faults},     {"defect", events.defects}, {"departure", events.departures},
        {"harmless", events.harmless}};
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        for (const auto& [name, count] : classes)
            count += line.rfind("{\"class\": \"" + name + "\"", 0) == 0;
        events.lines.push_back(line);
    }
    return events;
}

std::string summary(const Events& events)
{
    if (events.devices == 0)
        return "the program did not initialise the CUDA driver, or found another one";
    const std::string refused =
        events.errors > 0 ? fmt::format("; {} refused", times(events.errors, "call was", "calls were"))
                          : "";
    if (events.kernels == 0)
        return "no kernel ran" + refused;
    return fmt::format("{}: {}, {}, {} from the document, {} harmless{}",
                       times(events.kernels, "kernel", "kernels"), times(events.faults, "fault", "faults"),
                       times(events.defects, "defect", "defects"),
                       times(events.departures, "departure", "departures"), events.harmless, refused);
}

std::string document(const Events& events, const std::vector<std::string>& program, int status)
{
    std::string words;
    for (const std::string& word : program)
        words += (words.empty() ? "" : ", ") + json_text(word);
    std::string text = fmt::format(
        "{{\"program\": [{}], \"status\": {}, \"devices\": {}, \"kernels\": {}, \"faults\": {}, "
        "\"defects\": {}, \"departures\": {}, \"harmless\": {}, \"errors\": {},\n"
        " \"reports\": [",
        words, status, events.devices, events.kernels, events.faults, events.defects, events.departures,
        events.harmless, events.errors);
    const char* before = "\n  ";
    for (const std::string& line : events.lines) {
        text += before + line;
        before = ",\n  ";
    }
    return text + "]}\n";
}

}  // namespace emu::command
