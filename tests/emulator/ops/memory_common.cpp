// Spaces, order and bookkeeping of memory instructions.
#include "ops/memory.hpp"

#include "core/values.hpp"
#include "ops/async.hpp"
#include "ops/bank_passes.hpp"

#include <new>
#include <utility>

namespace emu {
namespace {

// Do the lanes of a whole warp access bytes one after another?
bool contiguous(Mask lanes, const Location (&at)[warp_lanes], int bytes)
{
    if (lanes != all_lanes)
        return false;
    for (int lane = 1; lane < warp_lanes; ++lane)
        if (at[lane].cta != at[0].cta || at[lane].bytes != at[0].bytes + lane * bytes)
            return false;
    return true;
}

void note_shared(Exec& x, Mask lanes, const Location (&at)[warp_lanes], int bytes, Access kind)
{
    Actor actor = generic_actor(x, -1);
    if (contiguous(lanes, at, bytes))
        return x.machine.checker.access_warp(*at[0].cta, at[0].offset, bytes, kind, actor);
    for (actor.lane = 0; actor.lane < warp_lanes; ++actor.lane)
        if (lanes >> actor.lane & 1)
            x.machine.checker.access(&x, *at[actor.lane].cta, at[actor.lane].offset, bytes, kind, actor);
}

void note_global(Exec& x, Mask lanes, const Location (&at)[warp_lanes], int bytes, Access kind)
{
    const auto address = [&](int lane) { return reinterpret_cast<uint64_t>(at[lane].bytes); };
    Actor actor = generic_actor(x, -1);
    if (contiguous(lanes, at, bytes))
        return x.machine.checker.access_global_warp(x.cta, address(0), bytes, kind, actor);
    for (actor.lane = 0; actor.lane < warp_lanes; ++actor.lane)
        if (lanes >> actor.lane & 1)
            x.machine.checker.access_global(x.cta, address(actor.lane), bytes, kind, actor);
}

// The flag at a location for threads as far away as a scope reaches.
std::pair<uint64_t, const void*> flag_of(const Exec& x, const Location& at, int scope)
{
    const void* domain = nullptr;
    if (scope == scope_cta)
        domain = &x.cta;
    else if (scope == scope_cluster)
        domain = x.cta.cluster;
    return {reinterpret_cast<uint64_t>(at.bytes), domain};
}

}  // namespace

void take_space(Modifiers& m, Op& op)
{
    using ptx::Space;
    static constexpr std::pair<std::string_view, Space> names[] = {
        {"global", Space::Global},          {"shared", Space::Shared},     {"shared::cta", Space::Shared},
        {"shared::cluster", Space::Shared}, {"local", Space::Local},       {"param", Space::Param},
        {"param::entry", Space::Param},     {"param::func", Space::Local}, {"const", Space::Const},
    };
    op.imm[memory_space] = static_cast<int32_t>(Space::None);
    for (const auto& [name, space] : names)
        if (m.take(name)) {
            op.imm[memory_space] = static_cast<int32_t>(space);
            op.imm[memory_cluster] = name == "shared::cluster";
            return;
        }
}

void take_scope(Modifiers& m, Op& op)
{
    const int scope = m.take_one({"cta", "cluster", "gpu", "sys", "gl"});
    op.imm[memory_scope] = scope < 0 || scope > scope_gpu ? scope_gpu : scope;
}

Order take_order(Modifiers& m, Op& op)
{
    static constexpr Order orders[] = {Order::Weak,    Order::Relaxed, Order::Relaxed,
                                       Order::Acquire, Order::Release, Order::AcquireRelease};
    const int order = m.take_one({"weak", "relaxed", "volatile", "acquire", "release", "acq_rel"});
    m.take("mmio");
    take_scope(m, op);
    return order < 0 ? Order::Weak : orders[order];
}

void ignore_cache_hints(Modifiers& m)
{
    m.ignore({"L1::", "L2::", "level::"});
    m.take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
    m.take("unified");
}

void fix_space(const ptx::Operand& address, Op& op)
{
    const bool symbol = !address.parts.empty() && address.parts[0].form == ptx::Operand::Form::Symbol;
    if (symbol && op.imm[memory_space] == static_cast<int32_t>(ptx::Space::Param))
        op.imm[memory_space] = static_cast<int32_t>(address.parts[0].space);
}

Location locate(Exec& x, int lane, int bytes, int alignment)
{
    const uint64_t address = address_of(x, x.op.address, lane);
    if (!x.op.imm[memory_cluster])
        return resolve(x, static_cast<ptx::Space>(x.op.imm[memory_space]), address, bytes, alignment, lane);
    const Mask lanes = std::exchange(x.lanes, Mask{1} << lane);
    const Location at = resolve_shared(x, static_cast<uint32_t>(address), bytes, alignment, "access");
    x.lanes = lanes;
    return at;
}

void locate_all(Exec& x, Location (&at)[warp_lanes], int bytes, int alignment, Access kind)
{
    Mask shared = 0, global = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1) {
            // In place: a copy would wait for all that has just been written.
            ::new (&at[lane]) Location(locate(x, lane, bytes, alignment));
            shared |= Mask{at[lane].cta != nullptr} << lane;
            global |= Mask{at[lane].space == ptx::Space::Global} << lane;
        }
    if (shared)
        count_passes(x, shared, at, bytes);
    Checker& checker = x.machine.checker;
    if (shared && checker.races())
        note_shared(x, shared, at, bytes, kind);
    if (global && checker.watches_global())
        note_global(x, global, at, bytes, kind);
}

// A release publishes what the lane has seen, a relaxed write what an earlier fence has: to its CTA, and as
// far beyond as its scope reaches.
void before_store(Exec& x, Order order, const Location& at, int lane)
{
    x.machine.progress = x.machine.steps;
    if (order == Order::Weak || !x.machine.checker.races())
        return;
    const bool releases = order == Order::Release || order == Order::AcquireRelease;
    SyncClock now;
    if (releases)
        x.machine.checker.release(x.warp.agent, now, Mask{1} << lane);
    for (int scope = 0; scope <= x.op.imm[memory_scope]; ++scope) {
        const SyncClock& clock = releases ? now : x.warp.published[scope];
        if (!clock.seen.empty())
            Checker::merge(x.machine.flags[flag_of(x, at, scope)], clock);
    }
}

void after_load(Exec& x, Order order, const Location& at, int lane)
{
    if (order == Order::Weak || !x.machine.checker.races())
        return;
    for (int scope = 0; scope <= x.op.imm[memory_scope]; ++scope) {
        const auto flag = x.machine.flags.find(flag_of(x, at, scope));
        if (flag == x.machine.flags.end())
            continue;
        if (order == Order::Acquire || order == Order::AcquireRelease)
            x.machine.checker.acquire(x.warp.agent, flag->second, Mask{1} << lane);
        else
            Checker::merge(x.warp.observed[scope], flag->second);
    }
}

}  // namespace emu
