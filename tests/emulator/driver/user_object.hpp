// User objects: counted references to something of the program's, destroyed with the last of them.
#pragma once

namespace emu::driver {

// Is the calling thread the one that runs destructors? They must not call the driver.
bool in_destructor();
// Until every destructor that was due has returned. Not to be called with the driver's lock held.
void wait_for_destructors();

}  // namespace emu::driver
