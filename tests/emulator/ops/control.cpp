// Branches and ends (ISA 9.7.12, 9.7.19).
#include "ops/control.hpp"
#include "ops/lanes.hpp"

namespace emu {
namespace {

// The lanes that go elsewhere become a fragment of their own.
void split(Exec& x, Mask lanes, int pc)
{
    Fragment other;
    other.pc = pc;
    other.lanes = lanes;
    x.fragment.lanes &= ~lanes;
    x.warp.fragments.push_back(other);
}

// imm: target, uniform.
void branch(Exec& x)
{
    const Mask rest = x.fragment.lanes & ~x.lanes;
    if (rest && x.op.imm[1])
        x.hazard("divergence", "a branch marked .uni diverges", rest);
    if (rest)
        split(x, rest, x.next_pc);
    x.next_pc = x.op.imm[0];
}

int target(const ptx::Instruction& instruction, const Program& program, const ptx::Operand& operand)
{
    if (operand.form != ptx::Operand::Form::Label)
        refuse(instruction, program, "a label is needed");
    return operand.index;
}

void decode_branch(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    op.imm[1] = m.take("uni");
    m.done();
    expect_operands(instruction, program, 1, 1);
    op.imm[0] = target(instruction, program, instruction.operands[0]);
    op.run = branch;
}

// args: the index, then the targets as constants.
void indexed_branch(Exec& x)
{
    const int choices = static_cast<int>(x.op.args.size()) - 1;
    if (const Mask rest = x.fragment.lanes & ~x.lanes)
        split(x, rest, x.next_pc);
    Mask left = x.lanes;
    for (int choice = 0; choice < choices; ++choice) {
        Mask taken = 0;
        for (int lane = 0; lane < warp_lanes; ++lane)
            if (left >> lane & 1 && lane_value(x, x.op.args[0], lane) == static_cast<uint64_t>(choice))
                taken |= Mask{1} << lane;
        const int pc = static_cast<int>(x.op.args[choice + 1].constant);
        left &= ~taken;
        if (taken == 0)
            continue;
        if (taken == x.fragment.lanes) {
            x.next_pc = pc;
            return;
        }
        split(x, taken, pc);
    }
    x.lanes = left;
    x.fault("branch", "the index of brx is out of range");
}

void decode_indexed(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take("idx");
    m.take("uni");
    m.done();
    if (instruction.operands.size() < 2)
        refuse(instruction, program, "wrong number of operands");
    op.args.push_back(decode_arg(instruction.operands[0], program, instruction, bits_type(32)));
    for (size_t i = 1; i < instruction.operands.size(); ++i) {
        Arg& arg = op.args.emplace_back();
        arg.form = Arg::Form::Constant;
        arg.constant = target(instruction, program, instruction.operands[i]);
    }
    op.run = indexed_branch;
}

void leave(Exec& x)
{
    x.warp.exited |= x.lanes;
    x.fragment.lanes &= ~x.lanes;
}

void decode_exit(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take("uni");
    m.done();
    expect_operands(instruction, program, 0, 0);
    op.run = leave;
}

void decode_trap(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers(instruction, program).done();
    expect_operands(instruction, program, 0, 0);
    op.run = [](Exec& x) { x.fault("trap", "the kernel gave up"); };
}

void decode_nothing(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take("u32"), m.take("mask");
    m.done();
    expect_operands(instruction, program, 1, 1);
    decode_arg(instruction.operands[0], program);
    op.run = [](Exec&) {};
}

}  // namespace

void add_branches(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["bra"] = decode_branch;
    t["brx"] = decode_indexed;
    t["ret"] = t["exit"] = decode_exit;
    t["trap"] = t["brkpt"] = decode_trap;
    t["nanosleep"] = t["pmevent"] = decode_nothing;
}

void add_control(DecoderTable& table)
{
    add_branches(table);
    add_named_barriers(table);
    add_warp_exchange(table);
    add_calls(table);
}

}  // namespace emu
