// Kernels in turns: with EMU_OVERLAP=1, all that nothing orders goes on at the same time.
#pragma once

#include "driver/driver.hpp"

namespace emu::driver {

using Items = std::map<uint64_t, std::shared_ptr<Item>>;  // by number: in the order in which they came

// Until these have ended. Others go on meanwhile, and may be half done then.
void run_in_turns(const Items& wanted);
void retire(Item& item);  // it has ended, or is about to

}  // namespace emu::driver
