// The words of a report: who did what, where.
#pragma once

#include "check/shadow.hpp"
#include "core/report.hpp"

#include <string>

namespace emu {

// Part of a shared memory (offset and bytes), of a tensor memory (column, columns, first lane) or of global
// memory (address and bytes).
enum class PlaceIn { Shared, Tensor, Global };
struct Place {
    PlaceIn in = PlaceIn::Shared;
    uint64_t first = 0, count = 0;
    uint32_t lane = 0;
};

Report describe(const char* kind, const Cta& owner, const Place& place, const Record& now,
                const Record* before);

}  // namespace emu
