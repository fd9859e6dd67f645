// Happens-before between warps and asynchronous operations, by vector clocks.
//
// Every warp is an agent. An asynchronous operation borrows one of a ring of agents for its lifetime; it
// starts from its issuer's clock and whoever observes its completion joins it. Shared memory and tensor
// memory have a shadow entry for each 16 bytes: the last writes and the reads since, each with agent,
// epoch, proxy and line; global memory has them while a launch lasts, if asked for. Two accesses of which
// one writes must be ordered; when they are and their proxies differ, a proxy fence must lie between them.
//
// Lanes of a warp share a clock, yet an order made by some lanes covers only those: what the others did
// since the warp last synchronised stays unordered until it does. Where a function takes lanes, all of them
// is the safe default, which never reports too much.
#pragma once

#include "check/clock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

struct Exec;
struct Cta;
struct Machine;
struct Record;
class Reports;

enum class Proxy : uint8_t { Generic, Async };
enum class Access : uint8_t { Read, Write, Atomic, StrongRead, StrongWrite };

// The clock that a barrier, group or flag carries from those who release it to those who acquire it.
struct SyncClock {
    Clock seen;
    Clock fenced;  // what of it generic writers have fenced for the async proxy
    Clock done;    // tcgen05 operations that have ended
    Clock tensor;  // those that a fence or commit has published
    void clear() { seen.clear(), fenced.clear(), done.clear(), tensor.clear(); }
};

// One side of an access, for the shadow and for reports. Lane -1: the whole warp at once (ldmatrix and the
// like) or an asynchronous operation. Strong accesses do not race with one another: volatile, relaxed,
// acquire and release ones, and Access::Atomic, which read and write: atom and mbarrier operations.
struct Actor {
    int agent = 0;
    Proxy proxy = Proxy::Generic;
    int line = 0;
    int warp = -1, lane = -1;
    const Cta* cta = nullptr;  // whose thread it is or started it, if known
};

class Checker {
public:
    void configure(int level);
    int level() const { return level_; }
    void swap(Checker& other);
    bool races() const { return level_ >= 2; }
    bool global_races() const { return level_ >= 3; }
    bool watches_global() const { return global_races() || front_ >= 0; }

    // Agents. A launch starts with none, or with one that stands for the launches in front, which have not
    // ended yet: accesses to global memory must come after a wait for them.
    void begin_launch(bool overlaps = false);
    void await_front(int agent, uint32_t lanes);
    bool front_awaited() const { return front_ < 0 || awaited_; }
    int new_warp();
    // Before the first instruction of a CTA: it follows everything of launches before.
    int start_async(int issuer, uint32_t lanes = ~0u);  // a fresh agent that has seen what its issuer has
    void finish_async(int agent);                       // the operation is done; its epoch stays in clocks

    // Order.
    void release(int agent, SyncClock& to, uint32_t lanes = ~0u);  // merge the agent's time into a barrier
    void acquire(int agent, const SyncClock& from, uint32_t lanes = ~0u);  // the agent has now seen it
    // The operation itself, done by these lanes, without what it has seen; and how each of these lanes has
    // now seen its own part of such operations.
    SyncClock alone(int operation, uint32_t lanes);
    void acquire_own(int agent, const SyncClock& from, uint32_t lanes);
    // Generic accesses that the agent has made or seen are ordered for the async proxy.
    void fence_proxy_async(int agent, uint32_t lanes = ~0u);
    // bar.warp.sync and other .sync warp instructions: these lanes have seen each other's accesses.
    void sync_warp(int agent, uint32_t lanes = ~0u);

    // Order of tcgen05 operations on tensor memory, kept apart: it goes with relaxed synchronisation too,
    // which orders execution and not memory, but needs fences of its own.
    void release_execution(int agent, SyncClock& to);  // relaxed arrivals: for tcgen05 alone
    void acquire_execution(int agent, const SyncClock& from);
    static void merge(SyncClock& into, const SyncClock& from);
    SyncClock tensor_clock(int operation);  // for those who wait for the operation or follow it
    void join_tensor(int agent, const SyncClock& operation);
    void fence_tensor_before(int agent);  // what it has joined goes along with later releases
    void fence_tensor_after(int agent);   // what it has acquired holds for its tcgen05 operations

    // Accesses to the shared memory of a CTA; `bytes` may span granules. Reports name the owner's kernel.
    void access(Exec* where, Cta& owner, uint32_t offset, uint32_t bytes, Access kind, const Actor& actor);
    // The same for all 32 lanes of a warp, `bytes` each, one after another; actor.lane says nothing.
    void access_warp(Cta& owner, uint32_t offset, uint32_t bytes, Access kind, const Actor& actor);
    // The same for global memory, if that is checked; the accessing CTA goes into reports. Which proxy it
    // is does not matter.
    void access_global(const Cta& by, uint64_t address, uint64_t bytes, Access kind, const Actor& actor);
    void access_global_warp(const Cta& by, uint64_t address, uint32_t bytes, Access kind,
                            const Actor& actor);
    // Tensor memory: `columns` from `column` on, of `lanes` lanes from `first_lane` on (multiples of 16).
    void access_tmem(Cta& owner, uint32_t column, uint32_t columns, uint32_t first_lane, uint32_t lanes,
                     Access kind, const Actor& actor);
    // Freed columns are uninitialised again, and whoever frees them must have seen all accesses, which a
    // fence or commit has published.
    void free_tmem(Cta& owner, uint32_t column, uint32_t columns, const Actor& actor);
    // Bytes that are known without a write, or are no longer.
    void set_initialised(Cta& owner, uint32_t offset, uint32_t bytes, bool initialised = true);
    // All threads of the CTA have exited: what others did in its shared memory must have come before.
    void leave(Cta& owner);
    void forget(Cta& owner);  // the CTA has ended: its warps' agents and its memories' shadows are free

private:
    void check_front(const Cta& by, uint64_t address, uint64_t bytes, const Record& now);

    int level_ = 2;
    int front_ = -1;  // agent; none: the launches in front have ended
    bool awaited_ = false;
    struct State;
    State* state_ = nullptr;

public:
    explicit Checker(Reports* reports = nullptr);
    ~Checker();
    Checker(const Checker&) = delete;
    Checker& operator=(const Checker&) = delete;
};

}  // namespace emu
