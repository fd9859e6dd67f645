#include "ops/async.hpp"

#include <algorithm>
#include <bit>

namespace emu {

void allow_modifiers(const ptx::Instruction& i, const Program& program,
                     std::initializer_list<std::string_view> allowed)
{
    for (const std::string& modifier : i.modifiers)
        if (std::find(allowed.begin(), allowed.end(), modifier) == allowed.end())
            refuse(i, program, "unknown modifier ." + modifier);
}

ptx::Space space_of(const ptx::Instruction& i)
{
    bool shared = i.has("shared") || i.has("shared::cta") || i.has("shared::cluster");
    return shared ? ptx::Space::Shared : ptx::Space::None;
}

bool is_predicate(const ptx::Operand& operand, const Program& program)
{
    return operand.form == ptx::Operand::Form::Register &&
           program.kernel->registers[operand.index].type.kind == ptx::Kind::Predicate;
}

int immediate(const ptx::Instruction& i, const Program& program, const ptx::Operand& operand)
{
    if (operand.form != ptx::Operand::Form::Immediate || operand.is_float)
        refuse(i, program, "an integer constant is expected");
    return static_cast<int>(operand.value);
}

Location shared_location(Exec& x, ptx::Space space, uint64_t address, int bytes, int alignment, int lane)
{
    if (space == ptx::Space::Shared)
        return resolve_shared(x, static_cast<uint32_t>(address), bytes, alignment, "operand");
    Location place = resolve(x, ptx::Space::None, address, bytes, alignment, lane);
    if (place.space != ptx::Space::Shared)
        x.fault("wrong-space", "the address does not lie in shared memory");
    return place;
}

Location same_place(Exec& x, const Location& here, uint32_t rank, const char* what)
{
    if (rank >= x.cta.cluster->ctas.size())
        x.fault("cluster-rank",
                std::string(what) + ": the cluster has no CTA of rank " + std::to_string(rank));
    Location there = here;
    there.cta = x.cta.cluster->ctas[rank].get();
    there.bytes = there.cta->shared.data() + there.offset;
    return there;
}

Actor generic_actor(const Exec& x, int lane)
{
    return {x.warp.agent, Proxy::Generic, x.op.line, x.warp.index, lane, &x.cta};
}

Deferred::Deferred(Exec& x, Mask lanes)
    : machine(x.machine), grid(x.grid), cta(x.cta), warp(x.warp), op(x.op), lanes(lanes),
      agent(x.machine.checker.start_async(x.warp.agent, lanes))
{
    fragment.pc = x.fragment.pc;
    fragment.lanes = lanes;
}

void start(const std::shared_ptr<Deferred>& deferred, const char* name, std::function<void()> finish)
{
    AsyncOp op;
    op.finish = std::move(finish);
    op.name = name;
    op.line = deferred->op.line;
    deferred->cta.cluster->start(std::move(op));
}

void check_alive(Exec& x, const Cta& owner)
{
    if (owner.done())
        x.hazard("exited-peer", "shared memory of the CTA of rank " + std::to_string(owner.rank) +
                                    " is used after all its threads have exited");
}

void AsyncGroups::commit(Mask lanes)
{
    Group group{lanes, {}};
    for (Open& open : open_) {
        if (open.lanes & lanes)
            group.tokens.push_back(open.token);
        open.lanes &= ~lanes;
    }
    std::erase_if(open_, [](const Open& open) { return open.lanes == 0; });
    groups_.push_back(std::move(group));
}

// Groups from the newest back, each with the lanes that have passed `newest` of theirs already.
template <typename Visit>
static void visit_older(auto& groups, Mask lanes, int newest, Visit visit)
{
    int passed[warp_lanes] = {};
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
        Mask old = 0;
        for (Mask rest = group->lanes & lanes; rest; rest &= rest - 1) {
            int lane = std::countr_zero(rest);
            if (passed[lane]++ >= newest)
                old |= 1u << lane;
        }
        if (old)
            visit(*group, old);
    }
}

std::vector<Token> AsyncGroups::before(Mask lanes, int newest) const
{
    std::vector<Token> tokens;
    visit_older(groups_, lanes, newest, [&](const Group& group, Mask old) {
        for (const Token& token : group.tokens)
            if (token->lanes & old)
                tokens.push_back(token);
    });
    return tokens;
}

std::vector<Token> AsyncGroups::everything(Mask lanes) const
{
    std::vector<Token> tokens = before(lanes, 0);
    for (const Open& open : open_)
        if (open.lanes & lanes)
            tokens.push_back(open.token);
    return tokens;
}

void AsyncGroups::forget(Mask lanes, int newest)
{
    visit_older(groups_, lanes, newest, [&](Group& group, Mask old) {
        bool done =
            std::all_of(group.tokens.begin(), group.tokens.end(), [](const Token& t) { return t->done; });
        if (done)
            group.lanes &= ~old;
    });
    std::erase_if(groups_, [](const Group& group) { return group.lanes == 0; });
}

AsyncGroups& groups_of(Warp& warp, Extension which)
{
    std::shared_ptr<void>& slot = warp.extension[which];
    if (!slot)
        slot = std::make_shared<AsyncGroups>();
    return *static_cast<AsyncGroups*>(slot.get());
}

bool wait_for_groups(Exec& x, AsyncGroups& groups, int newest, bool read)
{
    std::vector<Token> tokens = groups.before(x.lanes, newest);
    auto unfinished = [tokens, read] {
        return std::count_if(tokens.begin(), tokens.end(),
                             [read](const Token& t) { return !(read ? t->read : t->done); });
    };
    if (unfinished() > 0) {
        x.wait(
            [unfinished] { return unfinished() == 0; },
            [unfinished] { return std::to_string(unfinished()) + " unfinished operations of its groups"; },
            true);
        return false;
    }
    Checker& checker = x.machine.checker;
    if (!tokens.empty())
        x.machine.statistics.group_waits.insert(x.op.line);
    for (const Token& token : tokens) {
        token->waited = true;
        const SyncClock& clock = read ? token->read_clock : token->clock;
        if (token->by_lanes)
            checker.acquire_own(x.warp.agent, clock, token->lanes & x.lanes);
        else
            checker.acquire(x.warp.agent, clock, token->lanes & x.lanes);
    }
    groups.forget(x.lanes, newest);
    return true;
}

// Shared memory lasts no longer than its CTA, so that bulk stores must be waited for before the end.
static void check_bulk_stores(Exec& x)
{
    if (!x.warp.extension[ext_bulk])
        return;
    for (const Token& token : groups_of(x.warp, ext_bulk).everything(all_lanes))
        if (!token->waited)
            return x.hazard(
                "unwaited-bulk-store",
                "the warp ends and has not waited until its bulk stores have read shared memory");
}

void add_async(DecoderTable& table)
{
    table.at_warp_exit.push_back(check_bulk_stores);
    add_cp_async(table);
    add_mbarrier(table);
    add_cluster(table);
    add_async_scheduling(table);
    add_store_async(table);
    add_tensor_map(table);
}

}  // namespace emu
