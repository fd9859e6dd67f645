#include "ops/mbarrier.hpp"

#include "ops/async.hpp"

namespace emu {

namespace {

// A phase ends when nothing is pending any more; the next begins at once.
void complete_if_due(Exec& x, Mbarrier& barrier)
{
    x.machine.progress = x.machine.steps;
    if (barrier.pending != 0 || barrier.tx != 0)
        return;
    ++barrier.phase;
    barrier.pending = barrier.expected;
    barrier.completed = barrier.clock;
}

}  // namespace

Mbarrier& live_mbarrier(Exec& x, Cta& owner, uint32_t offset)
{
    auto found = owner.mbarriers.find(offset);
    if (found == owner.mbarriers.end())
        x.fault("mbarrier-uninitialised", "there is no initialised mbarrier at shared memory offset " +
                                              std::to_string(offset) + " of the CTA of rank " +
                                              std::to_string(owner.rank));
    check_alive(x, owner);
    return found->second;
}

std::string describe_mbarrier(const Cta& owner, uint32_t offset)
{
    std::string text =
        "mbarrier at offset " + std::to_string(offset) + " of rank " + std::to_string(owner.rank);
    auto found = owner.mbarriers.find(offset);
    if (found == owner.mbarriers.end())
        return text + " (invalidated)";
    const Mbarrier& barrier = found->second;
    return text + " (initialised at line " + std::to_string(barrier.line) + "): phase " +
           std::to_string(barrier.phase) + ", " + std::to_string(barrier.pending) + " of " +
           std::to_string(barrier.expected) + " arrivals and " + std::to_string(barrier.tx) +
           " bytes pending";
}

void mbarrier_arrive(Exec& x, Cta& owner, uint32_t offset, int count, const Actor& actor, bool releases,
                     Mask lanes)
{
    Mbarrier& barrier = live_mbarrier(x, owner, offset);
    x.machine.checker.access(&x, owner, offset, 8, Access::Atomic, actor);
    if (releases)
        x.machine.checker.release(actor.agent, barrier.clock, lanes);
    else
        x.machine.checker.release_execution(actor.agent, barrier.clock);
    if (count > barrier.pending) {
        x.hazard("mbarrier-overrun",
                 "more arrivals than the phase expects: " + describe_mbarrier(owner, offset),
                 actor.lane >= 0 ? 1u << actor.lane : 0);
        count = barrier.pending;
    }
    barrier.pending -= count;
    complete_if_due(x, barrier);
}

void mbarrier_expect_tx(Exec& x, Cta& owner, uint32_t offset, int64_t bytes, const Actor& actor)
{
    Mbarrier& barrier = live_mbarrier(x, owner, offset);
    x.machine.checker.access(&x, owner, offset, 8, Access::Atomic, actor);
    barrier.tx += bytes;
    if (barrier.tx > mbarrier_limit)
        x.hazard("mbarrier-tx-overflow",
                 "more than 2^20 - 1 bytes pending: " + describe_mbarrier(owner, offset));
    complete_if_due(x, barrier);
}

void mbarrier_complete_tx(Exec& x, Cta& owner, uint32_t offset, int64_t bytes, const Actor& actor)
{
    Mbarrier& barrier = live_mbarrier(x, owner, offset);
    x.machine.checker.access(&x, owner, offset, 8, Access::Atomic, actor);
    x.machine.checker.release(actor.agent, barrier.clock);
    barrier.tx -= bytes;
    if (barrier.tx < -mbarrier_limit)
        x.hazard("mbarrier-tx-underflow",
                 "more than 2^20 - 1 bytes arrived unexpected: " + describe_mbarrier(owner, offset));
    complete_if_due(x, barrier);
}

}  // namespace emu
