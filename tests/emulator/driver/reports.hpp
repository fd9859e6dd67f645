// What launches found goes to stderr, to the files EMU_REPORT and EMU_JSON and to emu_reports().
#pragma once

#include "driver/driver.hpp"

namespace emu::driver {

// Prints what is new, defects first and the rest shortened; the file has all. Did anything occur, since the
// last time, that EMU_STRICT fails a launch for?
bool publish_reports(Device& device);
void publish_kernel(const std::string& name);  // that it starts, to EMU_JSON; of each the first time
void publish_fault(const std::string& kind, const std::string& text);

}  // namespace emu::driver
