// Spaces, order and bookkeeping of memory instructions.
#include "ops/memory.hpp"

#include <algorithm>
#include <utility>

namespace emu {
namespace {

// Passes over the banks that an access of some lanes takes: 128 bytes of lanes at a time, each bank one
// word.
uint64_t wavefronts(Mask lanes, const Location (&at)[warp_lanes], int bytes)
{
    const int words = std::max(1, bytes / 4), together = std::max(1, warp_lanes / words);
    uint64_t total = 0;
    for (int first = 0; first < warp_lanes; first += together) {
        uint32_t seen[warp_lanes][warp_lanes];
        int count[warp_lanes] = {}, worst = 0;
        for (int lane = first; lane < first + together; ++lane)
            for (int word = 0; word < words && (lanes >> lane & 1); ++word) {
                const uint32_t address = at[lane].offset / 4 + word, bank = address % warp_lanes;
                if (std::find(seen[bank], seen[bank] + count[bank], address) != seen[bank] + count[bank] ||
                    count[bank] == warp_lanes)
                    continue;
                seen[bank][count[bank]++] = address;
                worst = std::max(worst, count[bank]);
            }
        total += worst;
    }
    return total;
}

bool contiguous(const Location (&at)[warp_lanes], int bytes)
{
    for (int lane = 1; lane < warp_lanes; ++lane)
        if (at[lane].cta != at[0].cta ||
            at[lane].offset != at[0].offset + static_cast<uint32_t>(lane * bytes))
            return false;
    return true;
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

void note_accesses(Exec& x, const Location (&at)[warp_lanes], int bytes, Access kind)
{
    Mask shared = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1 && at[lane].cta)
            shared |= Mask{1} << lane;
    if (!shared)
        return;
    x.machine.statistics.shared_accesses += 1;
    x.machine.statistics.shared_wavefronts += wavefronts(shared, at, bytes);
    if (!x.machine.checker.races())
        return;
    Actor actor{x.warp.agent, Proxy::Generic, x.op.line, x.warp.index, -1};
    if (shared == all_lanes && contiguous(at, bytes))
        return x.machine.checker.access_warp(*at[0].cta, at[0].offset, bytes, kind, actor);
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (shared >> lane & 1) {
            actor.lane = lane;
            x.machine.checker.access(&x, *at[lane].cta, at[lane].offset, bytes, kind, actor);
        }
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
