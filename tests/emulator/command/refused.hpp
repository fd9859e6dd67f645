// Lists of what the emulator does not do.
#pragma once

namespace emu::command {

void print_refused();
void print_devices();

}  // namespace emu::command
