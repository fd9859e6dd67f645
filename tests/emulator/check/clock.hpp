// Arithmetic of clocks.
#pragma once

#include "check/checker.hpp"

namespace emu {

// What was done at a time by some lanes of an agent; no lanes: by all of it at once.
inline bool covers(const Seen& seen, uint32_t time, uint32_t lanes)
{
    if (time <= seen.full)
        return true;
    if (time > seen.some)
        return false;
    return lanes ? (lanes & ~seen.lanes) == 0 : seen.lanes != 0;
}

inline bool covers(const Clock& clock, int agent, uint32_t time, uint32_t lanes)
{
    return agent < static_cast<int>(clock.size()) && covers(clock[agent], time, lanes);
}

// Lanes that only the older of two knows about count up to the newer's time: a report less, never one more.
inline void merge(Seen& into, const Seen& from)
{
    const uint32_t full = into.full > from.full ? into.full : from.full;
    const uint32_t some = into.some > from.some ? into.some : from.some;
    into.lanes = (into.some > full ? into.lanes : 0) | (from.some > full ? from.lanes : 0);
    into.full = full;
    into.some = some;
}

inline void merge(Clock& into, const Clock& from)
{
    if (into.size() < from.size())
        into.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i)
        merge(into[i], from[i]);
}

inline void merge(Clock& into, int agent, const Seen& from)
{
    if (static_cast<int>(into.size()) <= agent)
        into.resize(agent + 1);
    merge(into[agent], from);
}

// What of it these lanes did.
inline Clock part_of(const Clock& clock, uint32_t lanes)
{
    Clock part(clock.size());
    for (size_t i = 0; i < clock.size(); ++i)
        if (clock[i].lanes & lanes)
            part[i] = {0, clock[i].some, clock[i].lanes & lanes};
    return part;
}

}  // namespace emu
