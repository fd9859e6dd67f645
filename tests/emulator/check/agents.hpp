// Agents and what each has seen of the others: warps, and asynchronous operations while they last.
#pragma once

#include "check/clock.hpp"
#include "check/shadow.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emu {

// Numbers in the order in which they came; it has no memory where there were none.
class Numbers {
public:
    size_t size() const { return numbers_.size() - first_; }
    bool empty() const { return size() == 0; }
    void push(int number) { numbers_.push_back(number); }
    int pop()
    {
        const int oldest = numbers_[first_++];
        if (2 * first_ > numbers_.size()) {
            numbers_.erase(numbers_.begin(), numbers_.begin() + static_cast<ptrdiff_t>(first_));
            first_ = 0;
        }
        return oldest;
    }

private:
    std::vector<int> numbers_;
    size_t first_ = 0;
};

struct Agent {
    uint32_t now = 0;   // never goes back, also when the number is given to another
    uint32_t born = 0;  // its first time under this number
    uint32_t last = 0;  // of an operation that has ended: when it was last released
    bool warp = false, tensor_operation = false;
    int issuer = -1;  // of an operation
    Clock seen;       // of an operation: what its issuer had seen; what that had done itself is in `issued`
    Seen issued;
    Clock fenced;
    // Operations of which each lane of a warp has waited for its own part: their lanes are those that have.
    Clock own;
    // What lanes of a warp have acquired on their own, until the warp synchronises.
    Clock ahead, ahead_fenced;
    uint32_t ahead_lanes = 0;
    // tcgen05 operations: known to have ended; ordered for its own, acquired from others, published to
    // others.
    Clock done, tensor, tensor_acquired, tensor_published;
    Numbers resting;  // of operations that it issued and that have ended

    // How far it has seen another, and all of that.
    Seen seen_of(int other) const
    {
        Seen all = seen.of(other);
        if (other == issuer)
            merge(all, issued);
        return all;
    }
    void add_seen(Clock& to) const
    {
        to.merge(seen);
        if (issuer >= 0)
            to.merge(issuer, issued);
    }
};

class Agents {
public:
    void clear() { *this = {}; }
    int new_warp();
    void end_warp(int agent);
    int start(int issuer, uint32_t lanes);
    void finish(int operation);

    void release(int agent, SyncClock& to, uint32_t lanes);
    void acquire(int agent, const SyncClock& from, uint32_t lanes);
    void acquire_own(int agent, const SyncClock& from, uint32_t lanes);
    SyncClock alone(int agent, uint32_t lanes) const;
    void release_execution(int agent, SyncClock& to);
    void acquire_execution(int agent, const SyncClock& from);
    void fence(int agent, uint32_t lanes);
    void sync_warp(int agent, uint32_t lanes);

    // Did this happen before what the agent does now? In program order, or by what it has seen.
    bool before(const Record& access, const Record& now) const;
    // Did the agent do it itself, and not another that had its number before?
    bool own_of(const Record& access, int agent) const
    {
        return access.agent == agent && access.time >= agents_[agent].born;
    }
    // Is it known to lanes of the warp, if not to those that now ask?
    bool known_to_warp(const Record& access, const Record& now) const;
    // Has a proxy fence ordered it for the agent's accesses through the async proxy?
    bool fenced(const Record& access, const Record& now) const;
    // The same for tcgen05 operations: did it end before, and do waits and fences say so?
    bool ended(const Record& access, int agent) const;
    bool tensor_before(const Record& access, int agent) const;
    bool tensor_published(const Record& access, int agent) const;  // the same but for the fence behind

    Agent& at(int agent) { return agents_[agent]; }
    uint32_t now(int agent) const { return agents_[agent].now; }

private:
    int fresh();
    int find_seen(Numbers& resting, int issuer, uint32_t lanes);
    int take_number(int issuer, uint32_t lanes);
    bool has_seen_all(const Agent& agent, uint32_t lanes, int operation) const;

    std::vector<Agent> agents_;
    std::vector<int> free_;     // of warps that have ended
    Numbers resting_;           // of finished operations whose issuers have ended
    size_t resting_count_ = 0;  // with those that their issuers keep
};

}  // namespace emu
