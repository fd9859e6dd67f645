#include "driver/reports.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace emu::driver {
namespace {

void publish(const std::string& text)
{
    std::fprintf(stderr, "%s\n", text.c_str());
    const char* name = std::getenv("EMU_REPORT");
    if (!name)
        return;
    if (std::FILE* file = std::fopen(name, "a")) {
        std::fprintf(file, "%s\n", text.c_str());
        std::fclose(file);
    } else {
        std::fprintf(stderr, "EMU_REPORT: cannot write %s\n", name);
    }
}

}  // namespace

bool publish_reports(Device& device)
{
    const auto& all = device.machine.reports.all();
    uint64_t seen = 0;
    for (const Report& report : all)
        seen += report.count;
    while (device.reports_printed < all.size())
        publish(all[device.reports_printed++].print());
    return std::exchange(device.hazards_seen, seen) != seen;
}

void publish_fault(const std::string& text)
{
    const std::string line = "fault: " + text;
    driver().fault_texts += line + "\n";
    publish(line);
}

}  // namespace emu::driver
