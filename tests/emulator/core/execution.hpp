// A grid that is under way. Several may be so at a time: each has a checker and flags of its own, and they
// share memory, multiprocessors and the clock.
#pragma once

#include "core/state.hpp"

namespace emu {

class Scheduler;

enum class Turn {
    Progress,  // something happened that others can see
    Nothing,   // warps ran, maybe in vain
    Stuck,     // none can run before another grid does something, or all have run in vain for long
    Ended
};

class Execution {
public:
    // Throws Fault for a launch that cannot be.
    Execution(Machine& machine, const Program& program, const Launch& launch,
              std::shared_ptr<Multiprocessors> multiprocessors);
    ~Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    // Warps run so often, one after another. Throws Fault.
    Turn advance(uint64_t turns);
    // Another grid has made progress: what runs in vain may be waiting for it.
    void encourage() { idle_ = 0; }
    std::string stuck() const;  // what its warps wait for, once it is

private:
    void enter();
    void leave();

    Machine& machine_;
    std::unique_ptr<Checker> checker_;  // the machine's own, while this one has its place
    decltype(Machine::flags) flags_;
    uint64_t idle_ = 0, polls_ = 0;  // steps since there was progress
    std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace emu
