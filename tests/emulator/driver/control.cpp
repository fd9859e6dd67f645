#include "driver/control.hpp"

#include "driver/call.hpp"
#include "driver/events.hpp"
#include "driver/user_object.hpp"

#include <cstdio>
#include <mutex>
#include <stdexcept>

using namespace emu::driver;

namespace {

thread_local std::string answer_text;

int64_t count(const std::string& what)
{
    const Driver& d = driver();
    int64_t bytes = 0;
    for (const auto& [address, allocation] : d.allocations)
        bytes += static_cast<int64_t>(allocation.bytes);
    const std::map<std::string, int64_t> counts = {
        {"allocations", d.allocations.size()},
        {"bytes", bytes},
        {"contexts", live_contexts()},
        {"libraries", d.libraries.size()},
        {"modules", d.modules.size()},
        {"streams", d.streams.size()},
        {"events", d.events.size()},
        {"graphs", d.graphs.size() + d.executables.size()},
        {"user objects", d.user_objects.size()},
    };
    const auto found = counts.find(what);
    return found == counts.end() ? -1 : found->second;
}

}  // namespace

int emu_set_faults(const char* specification)
{
    const std::lock_guard lock(mutex());
    try {
        driver().faults.set(specification ? specification : "");
        return 0;
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "emu_set_faults: %s\n", error.what());
        return 1;
    }
}

uint64_t emu_calls(const char* name)
{
    const std::lock_guard lock(mutex());
    return driver().faults.calls(name);
}

const char* emu_called()
{
    const std::lock_guard lock(mutex());
    answer_text.clear();
    for (const auto& [name, number] : driver().faults.all_calls())
        answer_text += name + " " + std::to_string(number) + "\n";
    return answer_text.c_str();
}

const char* emu_reports()
{
    const std::lock_guard lock(mutex());
    answer_text = driver().fault_texts;
    for (const auto& device : driver().devices)
        for (const emu::Report& report : device->machine.reports.all())
            answer_text += report.print() + "\n";
    return answer_text.c_str();
}

void emu_clear_reports()
{
    const std::lock_guard lock(mutex());
    for (const auto& device : driver().devices) {
        device->machine.reports.clear();
        device->reports_printed = 0;
        device->reports_seen = {};
    }
    driver().fault_texts.clear();
}

int64_t emu_live(const char* what)
{
    wait_for_destructors();
    const std::lock_guard lock(mutex());
    return count(what);
}

int64_t emu_live_allocations() { return emu_live("allocations"); }

void emu_not_emulated(const char* name) { complain(name, "this function is not emulated"); }
