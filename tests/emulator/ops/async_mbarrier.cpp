// The mbarrier instructions.
#include "core/values.hpp"
#include "ops/async.hpp"
#include "ops/mbarrier.hpp"

#include <algorithm>
#include <bit>

namespace emu {

namespace {

// What the decoders remember in Op::imm.
enum MbarrierSlot { mbarrier_space, mbarrier_flags };
enum MbarrierFlag {
    with_state = 1,
    with_expect = 2,
    with_drop = 4,
    no_complete = 8,
    mbarrier_relaxed = 16,
    own_cta = 32,
    by_parity = 64,
    may_suspend = 128
};

// The opaque state: the phase, and what was pending before the arrival.
uint64_t make_state(const Mbarrier& barrier)
{
    return barrier.phase << 20 | static_cast<uint32_t>(barrier.pending);
}

Location barrier_of(Exec& x, int lane)
{
    auto space = static_cast<ptx::Space>(x.op.imm[mbarrier_space]);
    Location place = shared_location(x, space, address_of(x, x.op.address, lane), 8, 8, lane);
    if (x.op.imm[mbarrier_flags] & own_cta && place.cta != &x.cta)
        x.fault("mbarrier-remote", "this operation works on an mbarrier of the own CTA alone");
    return place;
}

template <typename Run>
void each_lane(Exec& x, Run run)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        run(std::countr_zero(rest));
}

// An operation of its own, so that fence.mbarrier_init can publish it and nothing else.
void note_init(Exec& x, uint32_t offset, int lane)
{
    Checker& checker = x.machine.checker;
    const Mask one = 1u << lane;
    Actor actor = generic_actor(x, lane);
    actor.agent = checker.start_async(x.warp.agent, one);
    checker.access(&x, x.cta, offset, 8, Access::Write, actor);
    const SyncClock init = checker.alone(actor.agent, one);
    checker.acquire_own(x.warp.agent, init, one);
    Checker::merge(x.warp.inits, init);
    checker.finish_async(actor.agent);
}

void run_init(Exec& x)
{
    each_lane(x, [&](int lane) {
        Location place = barrier_of(x, lane);
        auto count = static_cast<uint32_t>(lane_value(x, x.op.args[0], lane));
        if (count < 1 || count > mbarrier_limit)
            x.fault("mbarrier-count",
                    "an mbarrier's count must be 1 ... 2^20 - 1, not " + std::to_string(count));
        if (x.cta.mbarriers.count(place.offset))
            x.hazard("mbarrier-reinit",
                     "initialised again while it is live: " + describe_mbarrier(x.cta, place.offset),
                     1u << lane);
        note_init(x, place.offset, lane);
        Mbarrier barrier;
        barrier.expected = barrier.pending = static_cast<int32_t>(count);
        barrier.line = x.op.line;
        x.cta.mbarriers[place.offset] = barrier;
    });
}

void run_inval(Exec& x)
{
    each_lane(x, [&](int lane) {
        Location place = barrier_of(x, lane);
        live_mbarrier(x, x.cta, place.offset);
        x.machine.checker.access(&x, x.cta, place.offset, 8, Access::Write, generic_actor(x, lane));
        x.cta.mbarriers.erase(place.offset);
    });
}

void run_expect_tx(Exec& x)
{
    each_lane(x, [&](int lane) {
        Location place = barrier_of(x, lane);
        auto bytes = static_cast<uint32_t>(lane_value(x, x.op.args[0], lane));
        mbarrier_expect_tx(x, *place.cta, place.offset, bytes, generic_actor(x, lane));
    });
}

void run_complete_tx(Exec& x)
{
    each_lane(x, [&](int lane) {
        Location place = barrier_of(x, lane);
        auto bytes = static_cast<uint32_t>(lane_value(x, x.op.args[0], lane));
        mbarrier_complete_tx(x, *place.cta, place.offset, bytes, generic_actor(x, lane));
    });
}

void check_count(Exec& x, const Mbarrier& barrier, const Location& place, int64_t count)
{
    int flags = x.op.imm[mbarrier_flags];
    if (count < 1 || count > mbarrier_limit)
        x.fault("mbarrier-count", "an arrival must count 1 ... 2^20 - 1, not " + std::to_string(count));
    if (flags & no_complete && barrier.pending <= count && barrier.tx == 0)
        x.hazard("mbarrier-nocomplete",
                 "a .noComplete arrival ends the phase: " + describe_mbarrier(*place.cta, place.offset));
    if (flags & with_drop && count > barrier.expected)
        x.fault("mbarrier-count",
                "more dropped than expected: " + describe_mbarrier(*place.cta, place.offset));
}

void run_mbarrier_arrive(Exec& x)
{
    int flags = x.op.imm[mbarrier_flags];
    each_lane(x, [&](int lane) {
        Location place = barrier_of(x, lane);
        Actor actor = generic_actor(x, lane);
        Mbarrier& barrier = live_mbarrier(x, *place.cta, place.offset);
        uint32_t operand = x.op.args.size() > 1 ? lane_value(x, x.op.args[1], lane) : 1;
        uint32_t count = flags & with_expect ? 1 : operand;
        check_count(x, barrier, place, count);
        uint64_t state = make_state(barrier);
        if (flags & with_expect)
            mbarrier_expect_tx(x, *place.cta, place.offset, operand, actor);
        if (flags & with_drop)
            barrier.expected -= static_cast<int32_t>(count);
        mbarrier_arrive(x, *place.cta, place.offset, static_cast<int>(count), actor,
                        !(flags & mbarrier_relaxed), 1u << lane);
        if (flags & with_state)
            set_lane(x, x.op.args[0], lane, state);
    });
}

// A phase that somebody waits for.
struct Awaited {
    Cta* cta;
    uint32_t offset;
    uint64_t value;  // parity or state
    bool parity;
    Mask lanes;

    bool done() const
    {
        auto found = cta->mbarriers.find(offset);
        if (found == cta->mbarriers.end())
            return true;
        uint64_t phase = found->second.phase;
        return parity ? (phase & 1) != (value & 1) : phase > value >> 20;
    }
};

void add_awaited(std::vector<Awaited>& list, const Awaited& next)
{
    for (Awaited& old : list) {
        if (old.cta == next.cta && old.offset == next.offset && old.value == next.value) {
            old.lanes |= next.lanes;
            return;
        }
    }
    list.push_back(next);
}

std::vector<Awaited> awaited_phases(Exec& x)
{
    bool parity = x.op.imm[mbarrier_flags] & by_parity;
    std::vector<Awaited> list;
    each_lane(x, [&](int lane) {
        Location place = barrier_of(x, lane);
        Mbarrier& barrier = live_mbarrier(x, *place.cta, place.offset);
        uint64_t value = lane_value(x, x.op.args[1], lane);
        if (parity && (value & 0xffffffff) > 1)
            x.fault("mbarrier-parity", "a parity must be 0 or 1, not " + std::to_string(value));
        if (!parity && (value >> 20 > barrier.phase || barrier.phase - (value >> 20) > 1))
            x.hazard("mbarrier-state",
                     "the state is not of the running phase or the one before: " +
                         describe_mbarrier(*place.cta, place.offset),
                     1u << lane);
        add_awaited(list, {place.cta, place.offset, parity ? value & 1 : value, parity, 1u << lane});
    });
    return list;
}

// try_wait suspends until a phase of one of its lanes ends, or now and then gives up at once, as it may;
// test_wait always answers at once.
void run_mbarrier_wait(Exec& x)
{
    std::vector<Awaited> list = awaited_phases(x);
    Mask done = 0;
    for (const Awaited& awaited : list)
        done |= awaited.done() ? awaited.lanes : 0;
    bool suspends = x.op.imm[mbarrier_flags] & may_suspend && (x.retried || x.machine.random() % 16 != 0);
    if (done == 0 && x.lanes != 0 && suspends) {
        auto any = [list] {
            return std::any_of(list.begin(), list.end(), [](auto& a) { return a.done(); });
        };
        auto what = [list] {
            const Awaited& first = list.front();
            std::string goal = first.parity ? "parity " + std::to_string(first.value)
                                            : "end of phase " + std::to_string(first.value >> 20);
            return goal + " of " + describe_mbarrier(*first.cta, first.offset);
        };
        x.wait(any, what, true);
        return;
    }
    x.machine.polls += done == 0;
    for (const Awaited& awaited : list) {
        int lane = std::has_single_bit(awaited.lanes) ? std::countr_zero(awaited.lanes) : -1;
        x.machine.checker.access(&x, *awaited.cta, awaited.offset, 8, Access::Atomic,
                                 generic_actor(x, lane));
        if (!(done & awaited.lanes))
            continue;
        const SyncClock& completed = awaited.cta->mbarriers[awaited.offset].completed;
        if (x.op.imm[mbarrier_flags] & mbarrier_relaxed)
            x.machine.checker.acquire_execution(x.warp.agent, completed);
        else
            x.machine.checker.acquire(x.warp.agent, completed, awaited.lanes);
    }
    each_lane(x, [&](int lane) { set_lane(x, x.op.args[0], lane, done >> lane & 1); });
}

void run_pending_count(Exec& x)
{
    each_lane(x, [&](int lane) {
        set_lane(x, x.op.args[0], lane, lane_value(x, x.op.args[1], lane) & mbarrier_limit);
    });
}

void decode_init(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"init", "inval", "shared", "shared::cta", "b64"});
    bool init = i.has("init");
    expect_operands(i, program, init ? 2 : 1, init ? 2 : 1);
    op.imm[mbarrier_flags] = own_cta;
    op.address = decode_address(i.operands[0], program);
    if (init)
        op.args = {decode_arg(i.operands[1], program)};
    op.run = init ? run_init : run_inval;
}

void decode_tx(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"expect_tx", "complete_tx", "relaxed", "cta", "cluster", "shared", "shared::cta",
                     "shared::cluster", "b64"});
    expect_operands(i, program, 2, 2);
    op.address = decode_address(i.operands[0], program);
    op.args = {decode_arg(i.operands[1], program)};
    op.run = i.has("expect_tx") ? run_expect_tx : run_complete_tx;
}

void decode_arrive(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"arrive", "arrive_drop", "expect_tx", "noComplete", "release", "relaxed", "cta",
                     "cluster", "shared", "shared::cta", "shared::cluster", "b64"});
    bool needs_count = i.has("expect_tx") || i.has("noComplete");
    bool state = i.operands[0].form != ptx::Operand::Form::Address;
    size_t first = state ? 1 : 0;
    expect_operands(i, program, first + 1 + needs_count, first + 2);
    bool keeps_state = state && i.operands[0].form == ptx::Operand::Form::Register;
    if (i.has("shared::cluster") && keeps_state)
        refuse(i, program, "an arrival on shared::cluster gives no state");
    if (i.has("noComplete") && !keeps_state)
        refuse(i, program, "a .noComplete arrival gives a state");
    op.imm[mbarrier_flags] =
        (keeps_state ? with_state : 0) | (i.has("expect_tx") ? with_expect : 0) |
        (i.has("arrive_drop") ? with_drop : 0) | (i.has("noComplete") ? no_complete : 0) |
        (i.has("relaxed") ? mbarrier_relaxed : 0) | (i.has("shared::cluster") ? 0 : own_cta);
    op.args.push_back(keeps_state ? decode_arg(i.operands[0], program) : Arg{});
    op.address = decode_address(i.operands[first], program);
    if (i.operands.size() > first + 1)
        op.args.push_back(decode_arg(i.operands[first + 1], program));
    op.run = run_mbarrier_arrive;
}

void decode_wait(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"test_wait", "try_wait", "parity", "acquire", "relaxed", "cta", "cluster", "shared",
                     "shared::cta", "b64"});
    expect_operands(i, program, 3, i.has("try_wait") ? 4 : 3);
    op.imm[mbarrier_flags] = own_cta | (i.has("parity") ? by_parity : 0) |
                             (i.has("try_wait") ? may_suspend : 0) |
                             (i.has("relaxed") ? mbarrier_relaxed : 0);
    op.args = {decode_arg(i.operands[0], program), decode_arg(i.operands[2], program)};
    op.address = decode_address(i.operands[1], program);
    op.run = run_mbarrier_wait;
}

void decode_mbarrier(const ptx::Instruction& i, Program& program, Op& op)
{
    if (i.modifiers.empty() || i.operands.empty() || !i.has("b64"))
        refuse(i, program, "not an mbarrier operation");
    const std::string& what = i.modifiers[0];
    op.imm[mbarrier_space] = static_cast<int>(space_of(i));
    if (what == "init" || what == "inval") {
        decode_init(i, program, op);
    } else if (what == "expect_tx" || what == "complete_tx") {
        decode_tx(i, program, op);
    } else if (what == "arrive" || what == "arrive_drop") {
        decode_arrive(i, program, op);
    } else if (what == "test_wait" || what == "try_wait") {
        decode_wait(i, program, op);
    } else if (what == "pending_count") {
        allow_modifiers(i, program, {"pending_count", "b64"});
        expect_operands(i, program, 2, 2);
        op.args = {decode_arg(i.operands[0], program), decode_arg(i.operands[1], program)};
        op.run = run_pending_count;
    } else {
        refuse(i, program, "unknown mbarrier operation");
    }
}

}  // namespace

void add_mbarrier(DecoderTable& table) { table.by_opcode["mbarrier"] = decode_mbarrier; }

}  // namespace emu
