#include "check/checker.hpp"

#include "check/agents.hpp"
#include "check/describe.hpp"
#include "check/shadow.hpp"
#include "core/state.hpp"

#include <set>
#include <tuple>
#include <unordered_map>

namespace emu {

namespace {

constexpr uint32_t tmem_rows = 8;  // groups of 16 lanes, each a row of 32 granules
constexpr uint32_t tmem_row_granules = 32;

struct Shadows {
    Shadow shared, tensor;
};

Record record_of(const Actor& actor, Access kind, uint32_t time)
{
    Record record;
    record.agent = actor.agent;
    record.time = time;
    record.lanes = actor.lane < 0 ? 0 : uint32_t{1} << actor.lane;
    record.line = actor.line;
    record.warp = static_cast<int16_t>(actor.warp);
    record.kind = kind;
    record.proxy = actor.proxy;
    return record;
}

int number_of(const Cta& cta)
{
    const Dim3& grid = cta.cluster->grid->launch.grid;
    return static_cast<int>((cta.id[2] * grid.y + cta.id[1]) * grid.x + cta.id[0]);
}

}  // namespace

struct Checker::State {
    Agents agents;
    Reports* reports = nullptr;
    std::unordered_map<const Cta*, std::unique_ptr<Shadows>> shadows;
    std::vector<std::unique_ptr<Shadows>> spare;
    std::unordered_map<uint64_t, Granule> global;          // by address / 16
    std::set<std::tuple<std::string, int, int>> reported;  // kind and both lines

    Shadows& of(const Cta& owner);
    void report(const char* kind, const Cta& owner, const Place& place, const Record& now,
                const Record* before);
    const char* fault(const Record& old, const Record& now, PlaceIn in, bool before) const;
    void touch(Granule& granule, const Cta& owner, const Place& place, const Record& now);
    void touch_all(const Cta& owner, const Place& place, Record now, Shadow* shadow);
    void touch_lanes(const Cta& owner, const Place& place, Record now, Shadow* shadow);
    void check_initialised(Granule& granule, const Cta& owner, const Place& place, const Record& now);
};

Shadows& Checker::State::of(const Cta& owner)
{
    std::unique_ptr<Shadows>& entry = shadows[&owner];
    if (!entry) {
        if (spare.empty()) {
            entry = std::make_unique<Shadows>();
        } else {
            entry = std::move(spare.back());
            spare.pop_back();
        }
    }
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
const char* Checker::State::fault(const Record& old, const Record& now, PlaceIn in, bool before) const
{
    const bool same_warp = agents.own_of(old, now.agent);
    if (!before) {
        const bool same_instruction = same_warp && old.line == now.line && old.kind == now.kind;
        if (same_instruction)
            return nullptr;
        return same_warp || agents.known_to_warp(old, now) ? "missing-syncwarp" : "race";
    }
    if (in == PlaceIn::Global)
        return nullptr;
    if (in == PlaceIn::Tensor)
        return agents.tensor_before(old, now.agent) ? nullptr : "missing-tcgen05-fence";
    const bool crosses = old.proxy == Proxy::Generic && now.proxy == Proxy::Async && writes(old.kind);
    return crosses && !agents.fenced(old, now) ? "missing-proxy-fence" : nullptr;
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
        const bool before = place.in == PlaceIn::Tensor
                                ? agents.ended(old, now.agent)
                                : agents.before(part_of(old, common), part_of(now, common));
        if (conflict(old, now))
            if (const char* kind = fault(old, now, place.in, before))
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

Checker::Checker(Reports* reports) : state_(new State) { state_->reports = reports; }

Checker::~Checker() { delete state_; }

void Checker::configure(int level) { level_ = level; }

void Checker::begin_launch()
{
    state_->agents.clear();
    state_->shadows.clear();
    state_->global.clear();
    state_->reported.clear();
}

int Checker::new_warp() { return races() ? state_->agents.new_warp() : 0; }

int Checker::start_async(int issuer, uint32_t lanes)
{
    return races() ? state_->agents.start(issuer, lanes) : 0;
}

void Checker::finish_async(int agent)
{
    if (races())
        state_->agents.finish(agent);
}

void Checker::release(int agent, SyncClock& to, uint32_t lanes)
{
    if (races())
        state_->agents.release(agent, to, lanes);
}

void Checker::acquire(int agent, const SyncClock& from, uint32_t lanes)
{
    if (races())
        state_->agents.acquire(agent, from, lanes);
}

SyncClock Checker::alone(int operation, uint32_t lanes)
{
    return races() ? state_->agents.alone(operation, lanes) : SyncClock{};
}

void Checker::acquire_own(int agent, const SyncClock& from, uint32_t lanes)
{
    if (races())
        state_->agents.acquire_own(agent, from, lanes);
}

void Checker::release_execution(int agent, SyncClock& to)
{
    if (races())
        state_->agents.release_execution(agent, to);
}

void Checker::acquire_execution(int agent, const SyncClock& from)
{
    if (races())
        state_->agents.acquire_execution(agent, from);
}

void Checker::fence_proxy_async(int agent, uint32_t lanes)
{
    if (races())
        state_->agents.fence(agent, lanes);
}

void Checker::sync_warp(int agent, uint32_t lanes)
{
    if (races())
        state_->agents.sync_warp(agent, lanes);
}

void Checker::merge(SyncClock& into, const SyncClock& from)
{
    emu::merge(into.seen, from.seen);
    emu::merge(into.fenced, from.fenced);
    emu::merge(into.done, from.done);
    emu::merge(into.tensor, from.tensor);
}

SyncClock Checker::tensor_clock(int operation)
{
    if (!races())
        return {};
    Agent& of = state_->agents.at(operation);
    of.tensor_operation = true;
    const Seen now{of.now, of.now, ~0u};
    SyncClock clock{of.seen, {}, of.done, of.tensor};
    emu::merge(clock.seen, operation, now);
    emu::merge(clock.done, operation, now);
    emu::merge(clock.tensor, operation, now);
    return clock;
}

void Checker::join_tensor(int agent, const SyncClock& operation)
{
    if (!races())
        return;
    Agent& to = state_->agents.at(agent);
    emu::merge(to.seen, operation.seen);
    emu::merge(to.done, operation.done);
    emu::merge(to.tensor, operation.tensor);
}

void Checker::fence_tensor_before(int agent)
{
    if (!races())
        return;
    Agent& at = state_->agents.at(agent);
    emu::merge(at.tensor_published, at.tensor);
}

void Checker::fence_tensor_after(int agent)
{
    if (!races())
        return;
    Agent& at = state_->agents.at(agent);
    emu::merge(at.tensor, at.tensor_acquired);
}

// All granules of a place; without a shadow they are those of global memory.
void Checker::State::touch_all(const Cta& owner, const Place& place, Record now, Shadow* shadow)
{
    const uint64_t last = (place.first + place.count - 1) / granule_cells;
    if (shadow)
        shadow->at(static_cast<uint32_t>(last));
    for (uint64_t index = place.first / granule_cells; index <= last; ++index) {
        now.cells = cells_in(index, place.first, place.count);
        Granule& granule = shadow ? shadow->at(static_cast<uint32_t>(index)) : global[index];
        touch(granule, owner, place, now);
        check_initialised(granule, owner, place, now);
    }
}

// The same for a warp whose lanes access equal parts, one after another.
void Checker::State::touch_lanes(const Cta& owner, const Place& place, Record now, Shadow* shadow)
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

void Checker::access(Exec*, Cta& owner, uint32_t offset, uint32_t bytes, Access kind, const Actor& actor)
{
    if (races() && bytes != 0)
        state_->touch_all(owner, {PlaceIn::Shared, offset, bytes, 0},
                          record_of(actor, kind, state_->agents.now(actor.agent)),
                          &state_->of(owner).shared);
}

void Checker::access_warp(Cta& owner, uint32_t offset, uint32_t bytes, Access kind, const Actor& actor)
{
    if (races())
        state_->touch_lanes(owner, {PlaceIn::Shared, offset, bytes * warp_lanes, 0},
                            record_of(actor, kind, state_->agents.now(actor.agent)),
                            &state_->of(owner).shared);
}

void Checker::access_global(const Cta& by, uint64_t address, uint64_t bytes, Access kind,
                            const Actor& actor)
{
    if (!global_races() || bytes == 0)
        return;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent));
    now.cta = number_of(by);
    state_->touch_all(by, {PlaceIn::Global, address, bytes, 0}, now, nullptr);
}

void Checker::access_global_warp(const Cta& by, uint64_t address, uint32_t bytes, Access kind,
                                 const Actor& actor)
{
    if (!global_races())
        return;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent));
    now.cta = number_of(by);
    state_->touch_lanes(by, {PlaceIn::Global, address, uint64_t{bytes} * warp_lanes, 0}, now, nullptr);
}

void Checker::access_tmem(Cta& owner, uint32_t column, uint32_t columns, uint32_t first_lane,
                          uint32_t lanes, Access kind, const Actor& actor)
{
    if (!races() || columns == 0)
        return;
    Shadow& shadow = state_->of(owner).tensor;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent));
    const Place place{PlaceIn::Tensor, column, columns, first_lane};
    shadow.at(tmem_rows * tmem_row_granules - 1);
    for (uint32_t row = first_lane / granule_cells; row * granule_cells < first_lane + lanes; ++row)
        for (uint32_t index = column / granule_cells; index <= (column + columns - 1) / granule_cells;
             ++index) {
            now.cells = cells_in(index, column, columns);
            Granule& granule = shadow.at(row * tmem_row_granules + index);
            state_->touch(granule, owner, place, now);
            state_->check_initialised(granule, owner, place, now);
        }
}

void Checker::free_tmem(Cta& owner, uint32_t column, uint32_t columns, const Actor& actor)
{
    if (!races() || columns == 0)
        return;
    Shadow& shadow = state_->of(owner).tensor;
    shadow.at(tmem_rows * tmem_row_granules - 1);
    Record now = record_of(actor, Access::Write, state_->agents.now(actor.agent));
    const Place place{PlaceIn::Tensor, column, columns, 0};
    for (uint32_t row = 0; row < tmem_rows; ++row)
        for (uint32_t index = column / granule_cells; index <= (column + columns - 1) / granule_cells;
             ++index) {
            now.cells = cells_in(index, column, columns);
            Granule& granule = shadow.at(row * tmem_row_granules + index);
            for (Record& old : granule.records) {
                if (conflict(old, now) && !state_->agents.ended(old, now.agent))
                    state_->report("race", owner, place, now, &old);
                old.cells &= ~now.cells;
            }
            std::erase_if(granule.records, [](const Record& old) { return old.cells == 0; });
            granule.initialised &= ~now.cells;
        }
}

void Checker::set_initialised(Cta& owner, uint32_t offset, uint32_t bytes, bool initialised)
{
    if (!races() || bytes == 0)
        return;
    Shadow& shadow = state_->of(owner).shared;
    for (uint32_t index = offset / granule_cells; index <= (offset + bytes - 1) / granule_cells; ++index) {
        uint16_t& cells = shadow.at(index).initialised;
        const uint16_t these = cells_in(index, offset, bytes);
        cells = initialised ? cells | these : cells & ~these;
    }
}

void Checker::forget(Cta& owner)
{
    if (!races())
        return;
    for (const Warp& warp : owner.warps)
        state_->agents.end_warp(warp.agent);
    const auto found = state_->shadows.find(&owner);
    if (found == state_->shadows.end())
        return;
    found->second->shared.clear();
    found->second->tensor.clear();
    state_->spare.push_back(std::move(found->second));
    state_->shadows.erase(found);
}

}  // namespace emu
