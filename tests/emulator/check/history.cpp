// Accesses against what came before them.
#include "check/history.hpp"

#include "core/state.hpp"

namespace emu {

Shadows& Checker::State::of(const Cta& owner)
{
    if (&owner == last_owner)
        return *last;
    std::unique_ptr<Shadows>& entry = shadows[&owner];
    if (!entry) {
        if (spare.empty()) {
            entry = std::make_unique<Shadows>();
        } else {
            entry = std::move(spare.back());
            spare.pop_back();
        }
    }
    last_owner = &owner;
    last = entry.get();
    return *entry;
}

void Checker::State::report(const char* kind, const Cta& owner, const Place& place, const Record& now,
                            const Record* before)
{
    if (!reports || !reported.emplace(kind, now.line, before ? before->line : 0).second)
        return;
    reports->add(describe(kind, owner, place, now, before));
}

// What is wrong with the order of two conflicting accesses; null: nothing.
const char* Checker::State::fault(const Record& old, const Record& now, const Cta& owner,
                                  const Place& place, bool before) const
{
    const bool same_warp = agents.own_of(old, now.agent);
    if (!before) {
        const bool same_instruction = same_warp && old.line == now.line && old.kind == now.kind;
        if (same_instruction)
            return nullptr;
        return same_warp || agents.known_to_warp(old, now) ? "missing-syncwarp" : "race";
    }
    if (place.in == PlaceIn::Global)
        return nullptr;
    if (place.in == PlaceIn::Tensor)
        return agents.tensor_before(old, now.agent) ? nullptr : "missing-tcgen05-fence";
    const bool crosses = old.proxy == Proxy::Generic && now.proxy == Proxy::Async && writes(old.kind);
    if (!crosses || agents.fenced(old, now))
        return nullptr;
    // An mbarrier that TMA completes on was initialised by a generic write.
    const bool mbarrier = now.kind == Access::Atomic && owner.mbarriers.count(place.first) != 0;
    return mbarrier ? "missing-init-fence" : "missing-proxy-fence";
}

void Checker::State::touch(Granule& granule, const Cta& owner, const Place& place, const Record& now)
{
    std::vector<Record>& records = granule.records;
    if (records.size() == 1 && alike(records[0], now) && records[0].lanes == now.lanes &&
        agents.own_of(records[0], now.agent)) {
        records[0] = now;
        return;
    }
    bool dropped = false, merged = false;
    for (Record& old : records) {
        if (!(old.cells & now.cells))
            continue;
        const bool same_time =
            alike(old, now) && old.time == now.time && (!now.stride || old.lanes == now.lanes);
        if (same_time && (now.kind != Access::Write || old.line == now.line) && !merged) {
            old.lanes |= now.lanes;
            old.line = now.line;
            merged = true;
            continue;
        }
        const uint16_t common = old.cells & now.cells;
        const bool before = place.in == PlaceIn::Tensor ? agents.ended(old, now.agent)
                            : old.stride || now.stride
                                ? agents.before(part_of(old, common), part_of(now, common))
                                : agents.before(old, now);
        if (conflict(old, now))
            if (const char* kind = fault(old, now, owner, place, before))
                report(kind, owner, place, now, &old);
        if (now.kind == Access::Write)
            old.cells &= ~now.cells;
        else if (old.kind == now.kind && old.proxy == now.proxy && before && !(old.cells & ~now.cells))
            old.cells = 0;
        dropped |= old.cells == 0;
    }
    if (dropped)
        std::erase_if(records, [](const Record& old) { return old.cells == 0; });
    if (!merged)
        records.push_back(now);
}

void Checker::State::check_initialised(Granule& granule, const Cta& owner, const Place& place,
                                       const Record& now)
{
    if (place.in == PlaceIn::Global)
        return;
    if (now.kind == Access::Write || now.kind == Access::StrongWrite)
        granule.initialised |= now.cells;
    else if (now.cells & ~granule.initialised)
        report("uninitialised-read", owner, place, now, nullptr);
}

// All granules of a place; without a shadow they are those of global memory.
void Checker::State::touch_all(const Cta& owner, const Place& place, Record& now, Shadow* shadow)
{
    const uint64_t last = (place.first + place.count - 1) / granule_cells;
    constexpr uint64_t ahead = 4;
    if (shadow)
        shadow->at(static_cast<uint32_t>(last));
    for (uint64_t index = place.first / granule_cells; index <= last; ++index) {
        if (shadow && index + ahead <= last)
            shadow->prefetch(index + ahead);
        now.cells = cells_in(index, place.first, place.count);
        Granule& granule = shadow ? shadow->at(static_cast<uint32_t>(index)) : global[index];
        touch(granule, owner, place, now);
        check_initialised(granule, owner, place, now);
    }
}

// The same for a warp whose lanes access equal parts, one after another.
void Checker::State::touch_lanes(const Cta& owner, const Place& place, Record& now, Shadow* shadow)
{
    const uint64_t bytes = place.count / warp_lanes;
    if (place.first % granule_cells != 0 || granule_cells % bytes != 0) {
        for (int lane = 0; lane < warp_lanes; ++lane) {
            now.lanes = uint32_t{1} << lane;
            touch_all(owner, {place.in, place.first + lane * bytes, bytes, 0}, now, shadow);
        }
        return;
    }
    now.stride = static_cast<uint8_t>(bytes);
    now.cells = 0xffff;
    const auto lanes = static_cast<uint32_t>(granule_cells / bytes);  // of a granule
    for (uint32_t i = 0; i < warp_lanes / lanes; ++i) {
        now.lanes = ((uint32_t{1} << lanes) - 1) << i * lanes;
        const uint64_t index = place.first / granule_cells + i;
        Granule& granule = shadow ? shadow->at(static_cast<uint32_t>(index)) : global[index];
        touch(granule, owner, place, now);
        check_initialised(granule, owner, place, now);
    }
}

}  // namespace emu
