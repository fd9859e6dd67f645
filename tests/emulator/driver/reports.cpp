#include "driver/reports.hpp"

#include "driver/events.hpp"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

namespace emu::driver {
namespace {

void write_file(const std::string& text)
{
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
    const std::span all(device.machine.reports.all());
    const auto fresh = all.subspan(std::exchange(device.reports_printed, all.size()));
    for (const Report& report : fresh) {
        write_file(report.print());
        write_event(json(report));
    }
    for (const std::string& text : digest(fresh))
        std::fprintf(stderr, "%s\n", text.c_str());
    const ReportCounts now = device.machine.reports.times();
    const ReportCounts before = std::exchange(device.reports_seen, now);
    bool failed = false;
    for (size_t i = 0; i < report_classes; ++i)
        failed |= now[i] != before[i] && fails(static_cast<ReportClass>(i), device.machine.config.strict);
    return failed;
}

void publish_kernel(const std::string& name)
{
    if (driver().kernels_started.insert(name).second)
        write_event(json_event("kernel", name, "started"));
}

void publish_fault(const std::string& kind, const std::string& text)
{
    const std::string line = "fault: " + text;
    driver().fault_texts += line + "\n";
    std::fprintf(stderr, "%s\n", line.c_str());
    write_file(line);
    write_event(json_event("fault", kind, text));
}

}  // namespace emu::driver
