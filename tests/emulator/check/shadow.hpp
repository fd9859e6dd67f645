// What the checker remembers of a memory: for each granule of 16 cells (bytes of shared memory, columns of
// tensor memory) the last writes, the reads since, and which cells hold a value.
#pragma once

#include "check/checker.hpp"

#include <bit>
#include <cstdint>
#include <vector>

namespace emu {

constexpr uint32_t granule_cells = 16;

// In an order that leaves no gaps: there are many.
struct Record {
    int agent = 0;
    uint32_t time = 0;   // of the agent
    uint32_t lanes = 0;  // of a warp that did it; none: the whole agent at once
    int line = 0;
    int cta = -1;  // number in the grid, for global memory
    uint16_t cells = 0;
    int16_t warp = -1;
    uint8_t stride = 0;    // cells of each lane, if every lane has its own, one after another
    bool foreign = false;  // in the shared memory of another CTA
    Access kind = Access::Read;
    Proxy proxy = Proxy::Generic;
};

struct Granule {
    std::vector<Record> records;
    uint16_t initialised = 0;
};

inline bool writes(Access kind) { return kind != Access::Read && kind != Access::StrongRead; }
inline bool is_strong(Access kind) { return kind != Access::Read && kind != Access::Write; }

// Do two accesses need an order?
inline bool conflict(const Record& a, const Record& b)
{
    return (a.cells & b.cells) != 0 && (writes(a.kind) || writes(b.kind)) &&
           !(is_strong(a.kind) && is_strong(b.kind));
}

// The same kind of access to the same cells by the same agent, except that lanes may differ.
inline bool alike(const Record& a, const Record& b)
{
    return a.agent == b.agent && a.kind == b.kind && a.proxy == b.proxy && a.cells == b.cells &&
           (a.lanes == 0) == (b.lanes == 0) && a.stride == b.stride;
}

// The same access as far as these cells go: some of its lanes, if each has its own cells.
inline Record part_of(const Record& record, uint16_t cells)
{
    if (!record.stride)
        return record;
    Record part = record;
    part.lanes = 0;
    const int first = std::countr_zero(record.lanes);
    for (uint32_t rest = cells; rest; rest &= rest - 1)
        part.lanes |= uint32_t{1} << (first + std::countr_zero(rest) / record.stride);
    return part;
}

class Shadow {
public:
    // Grows as needed; granules start unwritten.
    Granule& at(uint32_t index)
    {
        if (index >= granules_.size())
            granules_.resize(index + 1);
        return granules_[index];
    }

    // Of a granule that is there: it will be looked at soon.
    void prefetch(uint64_t index) const { __builtin_prefetch(granules_[index].records.data()); }

    std::vector<Granule>& all() { return granules_; }

    void clear()
    {
        for (Granule& granule : granules_) {
            granule.records.clear();
            granule.initialised = 0;
        }
    }

private:
    std::vector<Granule> granules_;
};

// The cells of granule `index` that [first, first + count) touches.
inline uint16_t cells_in(uint64_t index, uint64_t first, uint64_t count)
{
    const uint64_t base = index * granule_cells;
    const uint64_t from = first > base ? first - base : 0;
    const uint64_t end = first + count - base;
    const uint64_t to = end < granule_cells ? end : granule_cells;
    return static_cast<uint16_t>(((uint32_t{1} << to) - 1) & ~((uint32_t{1} << from) - 1));
}

}  // namespace emu
