// bar, barrier.cta (ISA 9.7.13.1) and bar.warp.sync.
#include "ops/control.hpp"
#include "ops/lanes.hpp"

#include <bit>

namespace emu {
namespace {

enum BarrierKind { kind_sync, kind_arrive, kind_red };
enum BarrierReduction { red_none, red_popc, red_and, red_or };
enum BarrierSlot { barrier_kind, barrier_aligned, barrier_reduction };

// Operands: destination, barrier, threads, predicate; those that are missing have no form.
enum Operand { arg_result, arg_barrier, arg_threads, arg_predicate };

int needed(const Cta& cta, const BarrierRound& round)
{
    if (round.expected)
        return round.expected;
    int threads = 0;
    for (size_t i = 0; i < cta.warps.size(); ++i)
        if (cta.warps[i].exited != all_lanes || round.warps >> i & 1)
            threads += warp_lanes;
    return threads;
}

void complete_if_full(Machine& machine, Cta& cta, NamedBarrier& barrier)
{
    if (!barrier.round || barrier.round->arrived < needed(cta, *barrier.round))
        return;
    barrier.round->done = true;
    barrier.round = nullptr;
    machine.progress = machine.steps;
}

// A warp that ends may be the last that a barrier without a count waits for.
void barriers_at_exit(Exec& x)
{
    for (NamedBarrier& barrier : x.cta.barriers)
        if (barrier.round && !barrier.round->expected)
            complete_if_full(x.machine, x.cta, barrier);
}

uint32_t uniform(Exec& x, const Arg& arg, const char* what)
{
    const int first = std::countr_zero(x.lanes);
    const uint64_t value = lane_value(x, arg, first);
    for (int lane = first; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1 && lane_value(x, arg, lane) != value)
            x.fault("barrier", std::string("lanes of one warp disagree on the ") + what);
    return static_cast<uint32_t>(value);
}

// Barriers count whole warps: lanes that have ended are counted with the lowest that has not.
int arriving_threads(const Exec& x)
{
    if (x.op.imm[barrier_aligned])
        return warp_lanes;
    const Mask live = ~x.warp.exited;
    const bool leads = x.lanes >> std::countr_zero(live) & 1;
    return std::popcount(x.lanes) + (leads ? warp_lanes - std::popcount(live) : 0);
}

std::shared_ptr<BarrierRound> join(Exec& x, uint32_t id)
{
    NamedBarrier& barrier = x.cta.barriers[id];
    const bool counted = x.op.args[arg_threads].form != Arg::Form::None;
    const int expected = counted ? static_cast<int>(uniform(x, x.op.args[arg_threads], "thread count")) : 0;
    if (counted && (expected == 0 || expected % warp_lanes || expected > 1024))
        x.fault("barrier",
                std::to_string(expected) + " threads at a barrier: not a multiple of the warp size");
    if (!barrier.round) {
        barrier.round = std::make_shared<BarrierRound>();
        barrier.round->expected = expected;
    } else if (barrier.round->expected != expected) {
        x.hazard("barrier-mismatch",
                 "barrier " + std::to_string(id) + " expects " +
                     std::to_string(needed(x.cta, *barrier.round)) + " threads, this arrival says " +
                     (counted ? std::to_string(expected) : "all"),
                 x.lanes);
    }
    const std::shared_ptr<BarrierRound> round = barrier.round;
    round->arrived += arriving_threads(x);
    round->warps |= uint32_t{1} << x.warp.index;
    if (round->arrived > needed(x.cta, *round))
        x.hazard("barrier-overrun",
                 std::to_string(round->arrived) + " threads at barrier " + std::to_string(id) + " for " +
                     std::to_string(needed(x.cta, *round)),
                 x.lanes);
    if (x.op.imm[barrier_kind] == kind_red) {
        const Mask given = load_mask(x, x.op.args[arg_predicate]) & x.lanes;
        round->all = round->all && given == x.lanes;
        round->any = round->any || given;
        round->count += std::popcount(given);
    }
    return round;
}

void put_result(Warp& warp, const Op& op, Mask lanes, const BarrierRound& round)
{
    const Arg& result = op.args[arg_result];
    if (result.form != Arg::Form::Register)
        return;
    auto* row = reinterpret_cast<uint32_t*>(warp.registers.data() + result.reg);
    if (op.imm[barrier_reduction] == red_popc) {
        for (int lane = 0; lane < warp_lanes; ++lane)
            row[lane] = lanes >> lane & 1 ? round.count : row[lane];
        return;
    }
    const bool truth = op.imm[barrier_reduction] == red_and ? round.all : round.any;
    *row = truth ? *row | lanes : *row & ~lanes;
}

void named_barrier(Exec& x)
{
    if (x.op.imm[barrier_aligned])
        x.require_convergence();
    const uint32_t id = uniform(x, x.op.args[arg_barrier], "barrier");
    if (id >= x.cta.barriers.size())
        x.fault("barrier", "barrier " + std::to_string(id) + " of 16");
    const std::shared_ptr<BarrierRound> round = join(x, id);
    const Mask ordered = x.lanes | x.warp.exited;
    Checker& checker = x.machine.checker;
    if (checker.races())
        checker.release(x.warp.agent, round->clock, ordered);
    complete_if_full(x.machine, x.cta, x.cta.barriers[id]);
    if (x.op.imm[barrier_kind] == kind_arrive)
        return;
    Cta& cta = x.cta;
    const auto ready = [round, ordered, &checker, &warp = x.warp, &op = x.op, lanes = x.lanes] {
        if (!round->done)
            return false;
        if (checker.races())
            checker.acquire(warp.agent, round->clock, ordered);
        put_result(warp, op, lanes, *round);
        return true;
    };
    if (ready())
        return;
    x.wait(
        ready,
        [round, id, &cta] {
            return "for barrier " + std::to_string(id) + ": " + std::to_string(round->arrived) + " of " +
                   std::to_string(needed(cta, *round)) + " threads have arrived";
        },
        false);
}

// If all members have come or ended, they go on.
void release_if_full(Checker& checker, Warp& warp, WarpBarrier& barrier, Mask members)
{
    if (members & ~warp.exited & ~barrier.arrived)
        return;
    if (checker.races())
        checker.sync_warp(warp.agent, members | warp.exited);
    barrier.arrived = 0;
    ++barrier.generation;
}

// Lanes with one member mask arrive; if they must wait, they do so in a fragment of their own.
void arrive_at_warp_barrier(Exec& x, Mask group, Mask members)
{
    if (group & ~members)
        x.hazard("member-mask", "executed by lanes that are not in the member mask", group & ~members);
    Warp& warp = x.warp;
    Checker& checker = x.machine.checker;
    WarpBarrier& barrier = warp.barriers[members];
    const uint64_t generation = barrier.generation;
    barrier.arrived |= group;
    release_if_full(checker, warp, barrier, members);
    if (barrier.generation != generation)
        return;
    Wait wait;
    wait.ready = [&checker, &warp, &barrier, members, generation] {
        if (barrier.generation == generation)
            release_if_full(checker, warp, barrier, members);  // the missing lanes may have exited
        return barrier.generation != generation;
    };
    wait.what = [&warp, &barrier, members] {
        return "in bar.warp.sync for lanes " + hexadecimal(members & ~warp.exited & ~barrier.arrived);
    };
    if (group == x.fragment.lanes)
        return x.wait(wait.ready, wait.what, false);
    Fragment waiting;
    waiting.pc = x.next_pc;
    waiting.lanes = group;
    waiting.wait = wait;
    x.fragment.lanes &= ~group;
    warp.fragments.push_back(waiting);
}

// bar.warp.sync: the members may be at different places in the program.
void warp_barrier(Exec& x)
{
    for (Mask left = x.lanes; left;) {
        const auto members = static_cast<Mask>(lane_value(x, x.op.args[0], std::countr_zero(left)));
        Mask group = 0;
        for (int lane = 0; lane < warp_lanes; ++lane)
            if (left >> lane & 1 && lane_value(x, x.op.args[0], lane) == members)
                group |= Mask{1} << lane;
        left &= ~group;
        arrive_at_warp_barrier(x, group, members);
    }
}

void decode_warp_barrier(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take("warp");
    if (!m.take("sync"))
        refuse(instruction, program, "no such form");
    m.done();
    decode_values(instruction, program, op, {bits_type(32)});
    op.run = warp_barrier;
}

void take_reduction(Modifiers& m, const ptx::Instruction& instruction, const Program& program, Op& op)
{
    op.imm[barrier_reduction] = 1 + m.take_one({"popc", "and", "or"});
    ptx::Type t = m.type();
    const bool popc = op.imm[barrier_reduction] == red_popc;
    if (op.imm[barrier_reduction] == red_none || (popc ? t.bits != 32 : t.bits != 1))
        refuse(instruction, program, "no such form");
}

void decode_barrier(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take("cta");
    const int kind = m.take_one({"sync", "arrive", "red"});
    op.imm[barrier_kind] = kind;
    op.imm[barrier_aligned] = instruction.opcode == "bar" || m.take("aligned");
    if (instruction.opcode == "bar")
        m.take("aligned");
    if (kind == kind_red)
        take_reduction(m, instruction, program, op);
    m.done();
    const auto& operands = instruction.operands;
    const size_t first = kind == kind_red ? 1 : 0, extra = kind == kind_red ? 2 : 0;
    if (kind < 0)
        refuse(instruction, program, "no such form");
    expect_operands(instruction, program, extra + (kind == kind_arrive ? 2 : 1), extra + 2);
    op.args.resize(4);
    const bool counted = operands.size() == extra + 2;
    op.args[arg_barrier] = decode_arg(operands[first], program, instruction, bits_type(32));
    if (counted)
        op.args[arg_threads] = decode_arg(operands[first + 1], program, instruction, bits_type(32));
    if (kind == kind_red) {
        const bool popc = op.imm[barrier_reduction] == red_popc;
        op.args[arg_result] =
            decode_arg(operands[0], program, instruction, popc ? bits_type(32) : predicate_type);
        op.args[arg_predicate] = decode_arg(operands.back(), program, instruction, predicate_type);
    }
    op.run = named_barrier;
}

}  // namespace

void add_named_barriers(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["bar"] = t["barrier"] = decode_barrier;
    t["bar.warp"] = decode_warp_barrier;
    table.at_warp_exit.push_back(barriers_at_exit);
}

}  // namespace emu
