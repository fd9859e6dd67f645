// What launches found goes to stderr, to the file EMU_REPORT and to emu_reports().
#pragma once

#include "driver/driver.hpp"

namespace emu::driver {

// Prints each hazard when it is first seen; did any occur since the last time?
bool publish_reports(Device& device);
void publish_fault(const std::string& text);

}  // namespace emu::driver
