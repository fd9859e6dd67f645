// What bulk copies have in common, with and without a tensor map.
#pragma once

#include "numerics/reduction.hpp"
#include "ops/async.hpp"

namespace emu {

// Where a copy to shared memory leaves its bytes and whom it tells.
struct BulkTarget {
    Location to, barrier;
};
// One for each destination CTA. `lane` issues; mask: the multicast mask, or no multicast.
std::vector<BulkTarget> bulk_targets(Exec& x, const Location& to, const Location& barrier, const Mask* mask,
                                     bool pairs);

// What a copy or a reduction does to its destination, and an access of either to global memory.
Access access_kind(Reduction reduction);
void note_global(Deferred& deferred, const uint8_t* first, uint64_t bytes, Access kind);

// Everything has been written: tell the barrier.
void finish_load(Deferred& deferred, const BulkTarget& target, int64_t bytes);

// A copy from shared to global memory, in two moments: `read` takes the source, `write` delivers.
void start_store(Exec& x, int lane, const char* name, std::function<void(Deferred&)> read,
                 std::function<void(Deferred&)> write);

}  // namespace emu
