#include "check/checker.hpp"

#include "check/history.hpp"
#include "core/state.hpp"

#include <algorithm>
#include <utility>

namespace emu {

namespace {

constexpr uint32_t tmem_rows = 8;  // groups of 16 lanes, each a row of 32 granules
constexpr uint32_t tmem_row_granules = 32;

// `owner`: whose shared memory it is, if it is one.
Record record_of(const Actor& actor, Access kind, uint32_t time, const Cta* owner = nullptr)
{
    Record record;
    record.agent = actor.agent;
    record.time = time;
    record.lanes = actor.lane < 0 ? 0 : uint32_t{1} << actor.lane;
    record.line = actor.line;
    record.warp = static_cast<int16_t>(actor.warp);
    record.kind = kind;
    record.proxy = actor.proxy;
    record.foreign = owner && actor.cta && actor.cta != owner;
    return record;
}

int number_of(const Cta& cta)
{
    const Dim3& grid = cta.cluster->grid->launch.grid;
    return static_cast<int>((cta.id[2] * grid.y + cta.id[1]) * grid.x + cta.id[0]);
}

}  // namespace

Checker::Checker(Reports* reports) : state_(new State) { state_->reports = reports; }

Checker::~Checker() { delete state_; }

void Checker::configure(int level) { level_ = level; }

void Checker::swap(Checker& other)
{
    std::swap(level_, other.level_);
    std::swap(front_, other.front_);
    std::swap(awaited_, other.awaited_);
    std::swap(state_, other.state_);
}

void Checker::begin_launch(bool overlaps)
{
    state_->agents.clear();
    state_->shadows.clear();
    state_->last_owner = nullptr;
    state_->global.clear();
    state_->reported.clear();
    front_ = overlaps && races() ? state_->agents.new_warp() : -1;
    awaited_ = false;
}

void Checker::await_front(int agent, uint32_t lanes)
{
    if (front_ < 0)
        return;
    awaited_ = true;
    const uint32_t end = state_->agents.now(front_);
    SyncClock clock;
    clock.seen.merge(front_, Seen{end, end, ~0u});
    state_->agents.acquire(agent, clock, lanes);
}

void Checker::check_front(const Cta& by, uint64_t address, uint64_t bytes, const Record& now)
{
    if (front_ < 0)
        return;
    Record end;
    end.agent = front_;
    end.time = state_->agents.now(front_);
    if (!state_->agents.before(end, now))
        state_->report("early-access", by, {PlaceIn::Global, address, bytes, 0}, now, nullptr);
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
    into.seen.merge(from.seen);
    into.fenced.merge(from.fenced);
    into.done.merge(from.done);
    into.tensor.merge(from.tensor);
}

SyncClock Checker::tensor_clock(int operation)
{
    if (!races())
        return {};
    Agent& of = state_->agents.at(operation);
    of.tensor_operation = true;
    const Seen now{of.now, of.now, ~0u};
    SyncClock clock{{}, {}, of.done, of.tensor};
    of.add_seen(clock.seen);
    clock.seen.merge(operation, now);
    clock.done.merge(operation, now);
    clock.tensor.merge(operation, now);
    return clock;
}

void Checker::join_tensor(int agent, const SyncClock& operation)
{
    if (!races())
        return;
    Agent& to = state_->agents.at(agent);
    to.seen.merge(operation.seen);
    to.done.merge(operation.done);
    to.tensor.merge(operation.tensor);
}

void Checker::fence_tensor_before(int agent)
{
    if (!races())
        return;
    Agent& at = state_->agents.at(agent);
    at.tensor_published.merge(at.tensor);
}

void Checker::fence_tensor_after(int agent)
{
    if (!races())
        return;
    Agent& at = state_->agents.at(agent);
    at.tensor.merge(at.tensor_acquired);
}

void Checker::access(Exec*, Cta& owner, uint32_t offset, uint32_t bytes, Access kind, const Actor& actor)
{
    if (!races() || bytes == 0)
        return;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent), &owner);
    state_->touch_all(owner, {PlaceIn::Shared, offset, bytes, 0}, now, &state_->of(owner).shared);
}

void Checker::access_warp(Cta& owner, uint32_t offset, uint32_t bytes, Access kind, const Actor& actor)
{
    if (!races())
        return;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent), &owner);
    state_->touch_lanes(owner, {PlaceIn::Shared, offset, bytes * warp_lanes, 0}, now,
                        &state_->of(owner).shared);
}

void Checker::access_global(const Cta& by, uint64_t address, uint64_t bytes, Access kind,
                            const Actor& actor)
{
    if (!watches_global() || bytes == 0)
        return;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent));
    now.cta = number_of(by);
    check_front(by, address, bytes, now);
    if (global_races())
        state_->touch_all(by, {PlaceIn::Global, address, bytes, 0}, now, nullptr);
}

void Checker::access_global_warp(const Cta& by, uint64_t address, uint32_t bytes, Access kind,
                                 const Actor& actor)
{
    if (!watches_global())
        return;
    Record now = record_of(actor, kind, state_->agents.now(actor.agent));
    now.cta = number_of(by);
    check_front(by, address, uint64_t{bytes} * warp_lanes, now);
    if (global_races())
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
                else if (conflict(old, now) && !state_->agents.tensor_published(old, now.agent))
                    state_->report("missing-tcgen05-fence", owner, place, now, &old);
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

void Checker::leave(Cta& owner)
{
    if (!races() || owner.cluster->ctas.size() == 1)
        return;
    const auto seen = [&](const Record& access) {
        return std::any_of(owner.warps.begin(), owner.warps.end(), [&](const Warp& warp) {
            Record exit;
            exit.agent = warp.agent;
            return state_->agents.before(access, exit);
        });
    };
    std::vector<Granule>& granules = state_->of(owner).shared.all();
    for (size_t i = 0; i < granules.size(); ++i)
        for (const Record& access : granules[i].records)
            if (access.foreign && !seen(access))
                state_->report("exited-peer", owner, {PlaceIn::Shared, i * granule_cells, granule_cells, 0},
                               access, nullptr);
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
    state_->last_owner = nullptr;
}

}  // namespace emu
