// mbarrier objects: the state behind the instructions, also for operations that signal them from afar.
#pragma once

#include "core/state.hpp"

#include <string>

namespace emu {

constexpr int64_t mbarrier_limit = (1 << 20) - 1;  // of counts and of the transaction count

// The live object; faults where there is none.
Mbarrier& live_mbarrier(Exec& x, Cta& owner, uint32_t offset);
std::string describe_mbarrier(const Cta& owner, uint32_t offset);

void mbarrier_arrive(Exec& x, Cta& owner, uint32_t offset, int count, const Actor& actor,
                     bool releases = true, Mask lanes = all_lanes);
void mbarrier_expect_tx(Exec& x, Cta& owner, uint32_t offset, int64_t bytes, const Actor& actor);
// Bytes of an asynchronous operation have arrived: what it did is published with them.
void mbarrier_complete_tx(Exec& x, Cta& owner, uint32_t offset, int64_t bytes, const Actor& actor);

}  // namespace emu
