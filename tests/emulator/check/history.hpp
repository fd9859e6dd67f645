// What the checker knows while a launch runs: agents, and shadows of all memories.
#pragma once

#include "check/agents.hpp"
#include "check/describe.hpp"
#include "check/shadow.hpp"

#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

namespace emu {

struct Shadows {
    Shadow shared, tensor;
};

struct Checker::State {
    Agents agents;
    Reports* reports = nullptr;
    std::unordered_map<const Cta*, std::unique_ptr<Shadows>> shadows;
    std::vector<std::unique_ptr<Shadows>> spare;
    const Cta* last_owner = nullptr;  // whose `shadows` were last asked for
    Shadows* last = nullptr;
    std::unordered_map<uint64_t, Granule> global;          // by address / 16
    std::set<std::tuple<std::string, int, int>> reported;  // kind and both lines

    Shadows& of(const Cta& owner);
    void report(const char* kind, const Cta& owner, const Place& place, const Record& now,
                const Record* before);
    const char* fault(const Record& old, const Record& now, const Cta& owner, const Place& place,
                      bool before) const;
    void touch(Granule& granule, const Cta& owner, const Place& place, const Record& now);
    // These two set the cells of `now`, and its lanes: a copy that follows its making waits for all of it.
    void touch_all(const Cta& owner, const Place& place, Record& now, Shadow* shadow);
    void touch_lanes(const Cta& owner, const Place& place, Record& now, Shadow* shadow);
    void check_initialised(Granule& granule, const Cta& owner, const Place& place, const Record& now);
};

}  // namespace emu
