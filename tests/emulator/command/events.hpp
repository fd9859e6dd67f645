// What the driver told about a run: the lines that EMU_JSON's file has got.
#pragma once

#include <string>
#include <vector>

namespace emu::command {

struct Events {
    std::vector<std::string> lines;
    int devices = 0, kernels = 0, faults = 0, defects = 0, departures = 0, harmless = 0, errors = 0;

    bool any_defect() const { return faults + defects > 0; }
};

Events read_events(const std::string& file);
std::string summary(const Events& events);  // one line

// A document: {"program": ["./sum", "4096"], "status": 0, ..., "reports": [...]}
std::string document(const Events& events, const std::vector<std::string>& program, int status);

}  // namespace emu::command
