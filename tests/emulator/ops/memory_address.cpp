// cvta, isspacep, prefetch, discard and the fences between threads.
#include "ops/lanes.hpp"
#include "ops/memory.hpp"

namespace emu {
namespace {

uint64_t window_of(ptx::Space space)
{
    switch (space) {
    case ptx::Space::Shared: return shared_window;
    case ptx::Space::Local: return local_window;
    case ptx::Space::Param: return parameter_window;
    default: return 0;
    }
}

// imm: space, to the space (else from it).
void convert_address(Exec& x)
{
    const uint64_t window = window_of(static_cast<ptx::Space>(x.op.imm[memory_space]));
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const uint64_t address = lane_value(x, x.op.args[1], lane);
        set_lane(x, x.op.args[0], lane, x.op.imm[memory_first_free] ? address - window : address + window);
    }
}

void decode_cvta(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    op.imm[memory_first_free] = m.take("to");
    take_space(m, op);
    const ptx::Type t = m.type();
    m.done();
    if (t.bits != 64 || t.kind != ptx::Kind::Unsigned || op.imm[memory_space] == 0)
        refuse(instruction, program, "no such form");
    expect_operands(instruction, program, 2, 2);
    op.args.push_back(decode_arg(instruction.operands[0], program, instruction, t));
    op.args.push_back(decode_arg(instruction.operands[1], program));
    if (op.args[1].form == Arg::Form::Register && op.args[1].bits != 64)
        refuse(instruction, program, "an address has 64 bits");
    op.run = convert_address;
}

bool in_space(Exec& x, ptx::Space space, uint64_t address)
{
    const uint64_t window = address >> 32 << 32;
    if (space == ptx::Space::Shared && window == shared_window)
        return x.op.imm[memory_cluster] || static_cast<uint32_t>(address) >> rank_shift == x.cta.rank;
    if (space == ptx::Space::Local || space == ptx::Space::Param || space == ptx::Space::Shared)
        return window == window_of(space);
    const bool special = window == shared_window || window == local_window || window == parameter_window;
    bool constant = false;
    const auto& globals = x.grid.program->module->globals;
    for (size_t i = 0; i < globals.size(); ++i)
        constant |= globals[i].space == ptx::Space::Const &&
                    address - x.grid.program->global_address[i] < static_cast<uint64_t>(globals[i].bytes);
    return !special && constant == (space == ptx::Space::Const);
}

void decode_isspacep(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    take_space(m, op);
    m.done();
    if (op.imm[memory_space] == 0)
        refuse(instruction, program, "no such form");
    decode_values(instruction, program, op, {predicate_type, bits_type(64)});
    op.run = [](Exec& x) {
        Mask truth = 0;
        for (int lane = 0; lane < warp_lanes; ++lane)
            if (x.lanes >> lane & 1)
                truth |= Mask{in_space(x, static_cast<ptx::Space>(x.op.imm[memory_space]),
                                       lane_value(x, x.op.args[1], lane))}
                         << lane;
        store_mask(x, x.op.args[0], truth);
    };
}

// prefetch, prefetchu, applypriority, discard: no value changes but what discard leaves undefined.
void decode_hint(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    take_space(m, op);
    m.ignore({"L1", "L2"});
    m.done();
    const bool discards = instruction.opcode == "discard";
    expect_operands(instruction, program, 1, 2);
    op.address = decode_address(instruction.operands[0], program);
    if (!discards) {
        op.run = [](Exec&) {};
        return;
    }
    op.run = [](Exec& x) {
        for (int lane = 0; lane < warp_lanes; ++lane)
            if (x.lanes >> lane & 1)
                std::memset(locate(x, lane, 128, 128).bytes, 0xff, 128);
    };
}

// After a fence, earlier strong reads acquire and later strong writes release, no further than it reaches.
void fence(Exec& x)
{
    Checker& checker = x.machine.checker;
    if (!checker.races())
        return;
    const int scope = x.op.imm[memory_scope];
    for (int i = 0; i <= scope; ++i)
        checker.acquire(x.warp.agent, x.warp.observed[i], x.lanes);
    SyncClock now;
    checker.release(x.warp.agent, now, x.lanes);
    for (int i = 0; i <= scope; ++i)
        Checker::merge(x.warp.published[i], now);
}

void decode_fence(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take_one({"sc", "acq_rel", "acquire", "release"});
    take_scope(m, op);
    if (m.take("sync_restrict::shared::cta") || m.take("sync_restrict::shared::cluster"))
        m.take("cluster");
    m.done();
    expect_operands(instruction, program, 0, 0);
    op.run = fence;
}

}  // namespace

void add_address(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["cvta"] = decode_cvta;
    t["isspacep"] = decode_isspacep;
    t["prefetch"] = t["prefetchu"] = t["applypriority"] = t["discard"] = decode_hint;
    t["fence"] = t["membar"] = decode_fence;
}

}  // namespace emu
