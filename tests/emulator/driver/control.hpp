// The emulator's own functions, exported beside the driver's: for tests.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// Replace what fails (see faults.hpp); counts of calls start again. 0, or 1 if it cannot be read.
int emu_set_faults(const char* specification);
// How often an entry point was called since faults were last set; "cuMemAlloc", without version.
uint64_t emu_calls(const char* name);
// All entry points called since then: lines of name and number. Valid until the thread's next emu_ call.
const char* emu_called();
// Hazards and faults found so far, and forgetting them. Valid until the thread's next emu_ call.
const char* emu_reports();
void emu_clear_reports();
// Objects that exist: "allocations", "bytes" (of allocations), "contexts" (created ones and retains of
// primary ones), "libraries", "modules", "streams", "events", "graphs", "user objects". -1: no such word.
// It first waits for the destructors of user objects that are due.
int64_t emu_live(const char* what);
int64_t emu_live_allocations();
// Says that this function is not emulated: for the runtime.
void emu_not_emulated(const char* name);
}
