#include "check/agents.hpp"

#include <algorithm>

namespace emu {

namespace {

// So many numbers of finished operations are kept waiting before one is used again too early, and so many
// are looked at.
constexpr size_t most_resting = 1024, most_tries = 16;

// An agent's own time in the clock it hands out.
Seen own_time(const Agent& agent, uint32_t lanes)
{
    return lanes == ~0u ? Seen{agent.now, agent.now, lanes} : Seen{0, agent.now, lanes};
}

bool knows_ahead(const Agent& agent, uint32_t lanes) { return (agent.ahead_lanes & lanes) != 0; }

// What these lanes have seen beyond what all of the agent has.
void add_others(const Agent& agent, uint32_t lanes, Clock& to)
{
    if (!agent.own.empty())
        to.merge(agent.own.part_of(lanes));
    if (knows_ahead(agent, lanes))
        to.merge(agent.ahead);
}

// The same, and what they have done.
void add_lanes(const Agent& agent, int id, uint32_t lanes, Clock& to)
{
    to.merge(id, own_time(agent, lanes));
    add_others(agent, lanes, to);
}

}  // namespace

int Agents::fresh()
{
    agents_.emplace_back();
    return static_cast<int>(agents_.size()) - 1;
}

int Agents::new_warp()
{
    int id;
    if (free_.empty()) {
        id = fresh();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    const uint32_t last = agents_[id].now;
    while (!agents_[id].resting.empty())
        resting_.push(agents_[id].resting.pop());
    agents_[id] = {};
    agents_[id].now = agents_[id].born = last + 1;
    agents_[id].warp = true;
    return id;
}

void Agents::end_warp(int agent)
{
    if (agent < static_cast<int>(agents_.size()) && agents_[agent].warp)
        free_.push_back(agent);
}

int Agents::find_seen(Numbers& resting, int issuer, uint32_t lanes)
{
    const size_t tries = std::min(resting.size(), most_tries);
    for (size_t i = 0; i < tries; ++i) {
        const int id = resting.pop();
        if (has_seen_all(agents_[issuer], lanes, id))
            return id;
        resting.push(id);
    }
    return -1;
}

// The number of a finished operation that the issuer has seen: those who see its successor rightly seem to
// have seen it too. One that the issuer has not seen would hide races. Its own come first, because it may
// never see those of others; the fewer numbers, the shorter all clocks.
int Agents::take_number(int issuer, uint32_t lanes)
{
    Numbers& own = agents_[issuer].resting;
    int id = find_seen(own, issuer, lanes);
    if (id < 0)
        id = find_seen(resting_, issuer, lanes);
    Numbers& oldest = resting_.empty() ? own : resting_;
    if (id < 0 && (resting_count_ < most_resting || oldest.empty()))
        return fresh();
    if (id < 0)
        id = oldest.pop();
    --resting_count_;
    return id;
}

void Agents::finish(int operation)
{
    Agent& ended = agents_[operation];
    ended.last = std::max(ended.born, ended.now - 1);
    agents_[ended.issuer].resting.push(operation);
    ++resting_count_;
}

bool Agents::has_seen_all(const Agent& agent, uint32_t lanes, int operation) const
{
    const uint32_t time = agents_[operation].last;
    const auto is_all = [time](const Seen& seen) {
        return time <= seen.full || (time <= seen.some && seen.lanes == ~0u);
    };
    if (agents_[operation].tensor_operation &&
        !(is_all(agent.done.of(operation)) && is_all(agent.tensor.of(operation))))
        return false;
    return is_all(agent.seen_of(operation)) ||
           (knows_ahead(agent, lanes) && is_all(agent.ahead.of(operation)));
}

int Agents::start(int issuer, uint32_t lanes)
{
    const int id = take_number(issuer, lanes);
    Agent& from = agents_[issuer];
    Agent& to = agents_[id];
    to.born = ++to.now;
    to.issuer = issuer;
    to.warp = to.tensor_operation = false;
    to.own.clear();
    to.tensor_acquired.clear();
    to.tensor_published.clear();
    to.seen.clear();
    from.add_seen(to.seen);
    add_others(from, lanes, to.seen);
    to.issued = own_time(from, lanes);
    to.fenced = from.fenced;
    to.done = from.done;
    to.tensor = from.tensor;
    if (knows_ahead(from, lanes))
        to.fenced.merge(from.ahead_fenced);
    ++from.now;
    return id;
}

void Agents::release(int id, SyncClock& to, uint32_t lanes)
{
    Agent& agent = agents_[id];
    agent.add_seen(to.seen);
    add_lanes(agent, id, lanes, to.seen);
    to.fenced.merge(agent.fenced);
    if (knows_ahead(agent, lanes))
        to.fenced.merge(agent.ahead_fenced);
    release_execution(id, to);
    ++agent.now;
}

void Agents::release_execution(int id, SyncClock& to)
{
    Agent& agent = agents_[id];
    to.done.merge(agent.done);
    to.tensor.merge(agent.tensor_published);
    to.tensor.merge(agent.tensor_acquired);
}

void Agents::acquire_execution(int id, const SyncClock& from)
{
    Agent& agent = agents_[id];
    agent.done.merge(from.done);
    agent.tensor_acquired.merge(from.tensor);
}

void Agents::acquire(int id, const SyncClock& from, uint32_t lanes)
{
    Agent& agent = agents_[id];
    if (lanes == ~0u) {
        agent.seen.merge(from.seen);
        agent.fenced.merge(from.fenced);
    } else {
        agent.ahead_lanes |= lanes;
        agent.ahead.merge(from.seen);
        agent.ahead_fenced.merge(from.fenced);
    }
    acquire_execution(id, from);
}

void Agents::acquire_own(int id, const SyncClock& from, uint32_t lanes)
{
    agents_[id].own.merge(from.seen.part_of(lanes));
}

SyncClock Agents::alone(int id, uint32_t lanes) const
{
    SyncClock clock;
    clock.seen.merge(id, Seen{0, agents_[id].now, lanes});
    return clock;
}

void Agents::fence(int id, uint32_t lanes)
{
    Agent& agent = agents_[id];
    Clock& fenced = lanes == ~0u ? agent.fenced : agent.ahead_fenced;
    agent.add_seen(fenced);
    add_lanes(agent, id, lanes, fenced);
    if (lanes != ~0u)
        agent.ahead_lanes |= lanes;
    ++agent.now;
}

void Agents::sync_warp(int id, uint32_t lanes)
{
    Agent& agent = agents_[id];
    add_lanes(agent, id, lanes, agent.seen);
    if (lanes == ~0u)
        agent.own.clear();
    if (knows_ahead(agent, lanes)) {
        agent.fenced.merge(agent.ahead_fenced);
        agent.ahead.clear();
        agent.ahead_fenced.clear();
        agent.ahead_lanes = 0;
    }
    ++agent.now;
}

bool Agents::before(const Record& access, const Record& now) const
{
    const Agent& agent = agents_[now.agent];
    if (own_of(access, now.agent)) {
        const bool program_order = !agent.warp || access.lanes == 0 || access.lanes == now.lanes;
        if (program_order)
            return true;
    }
    if (covers(agent.seen_of(access.agent), access.time, access.lanes))
        return true;
    if (access.lanes != 0 && access.lanes == now.lanes && known_to_warp(access, now))
        return true;
    const bool ahead = now.lanes ? knows_ahead(agent, now.lanes) : agent.ahead_lanes != 0;
    return ahead && agent.ahead.covers(access.agent, access.time, access.lanes);
}

bool Agents::known_to_warp(const Record& access, const Record& now) const
{
    return agents_[now.agent].own.covers(access.agent, access.time, access.lanes);
}

bool Agents::fenced(const Record& access, const Record& now) const
{
    const Agent& agent = agents_[now.agent];
    return agent.fenced.covers(access.agent, access.time, access.lanes);
}

bool Agents::ended(const Record& access, int agent) const
{
    return access.agent == agent || agents_[agent].done.covers(access.agent, access.time, 0);
}

bool Agents::tensor_before(const Record& access, int agent) const
{
    return access.agent == agent || agents_[agent].tensor.covers(access.agent, access.time, 0);
}

bool Agents::tensor_published(const Record& access, int agent) const
{
    return tensor_before(access, agent) ||
           agents_[agent].tensor_acquired.covers(access.agent, access.time, 0);
}

}  // namespace emu
