// How a call gets a workspace that nothing else uses at the same time, where the handle's own would not do:
// hgemm_set_workspace_per_stream().
#pragma once

#include "src/run/handle.hpp"

namespace hg {

// From now on each stream and each graph has its own, of so many bytes at most; 0: as at first.
Status lend(Handle& handle, size_t bytes);

// Before a call is planned or recognised: notes its stream and capture.
Status find_place(Handle& handle);

// After it is planned: makes sure that there are so many bytes behind what is reserved, and counters if it
// counts. The one thing in a compute call that may allocate, and only for a handle that lends.
Status provide_workspace(Handle& handle, size_t bytes, bool counts);

}  // namespace hg
