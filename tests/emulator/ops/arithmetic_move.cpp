// mov (ISA 9.7.9.3-4): copies, addresses, special registers, packing and unpacking.
#include "ops/arithmetic.hpp"

#include <bit>

namespace emu {
namespace {

template <class T>
void copy(Exec& x)
{
    Lanes<T> value;
    load_lanes(x, x.op.args[1], value);
    store_lanes(x, x.op.args[0], value);
}

void copy_wide(Exec& x)
{
    const uint64_t* from = x.row64(x.op.args[1].reg);
    uint64_t* to = x.row64(x.op.args[0].reg);
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1)
            to[2 * lane] = from[2 * lane], to[2 * lane + 1] = from[2 * lane + 1];
}

// imm: bits of an element. args: the scalar, then the elements. Calls `move(element, word, shift)` for
// each element and the place of its bits in the scalar.
template <class Move>
void each_element(const Exec& x, Move move)
{
    for (size_t i = 1; i < x.op.args.size(); ++i) {
        const int at = static_cast<int>(i - 1) * x.op.imm[0];
        move(x.op.args[i], at / 64, at % 64);
    }
}

void unpack(Exec& x)
{
    const Arg& whole = x.op.args[0];
    const uint64_t mask = ~uint64_t{0} >> (64 - x.op.imm[0]);
    const bool wide = whole.width == 16;
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const uint64_t words[2] = {lane_value(x, whole, lane), wide ? x.row64(whole.reg)[2 * lane + 1] : 0};
        each_element(x, [&](const Arg& element, int word, int shift) {
            set_lane(x, element, lane, words[word] >> shift & mask);
        });
    }
}

void pack(Exec& x)
{
    const Arg& whole = x.op.args[0];
    const uint64_t mask = ~uint64_t{0} >> (64 - x.op.imm[0]);
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        uint64_t words[2] = {};
        each_element(x, [&](const Arg& element, int word, int shift) {
            words[word] |= (lane_value(x, element, lane) & mask) << shift;
        });
        set_lane(x, whole, lane, words[0]);
        if (whole.form == Arg::Form::Register && whole.width == 16)
            x.row64(whole.reg)[2 * lane + 1] = words[1];
    }
}

void decode_vector(const ptx::Instruction& instruction, Program& program, Op& op, const ptx::Type& t,
                   bool packs)
{
    const ptx::Operand& vector = instruction.operands[packs ? 1 : 0];
    const size_t count = vector.parts.size();
    if (t.kind != ptx::Kind::Bits || t.packed > 1 || (count != 2 && count != 4) || t.bits / count < 8)
        refuse(instruction, program, "no such form");
    const int bits = static_cast<int>(t.bits / count);
    op.imm[0] = bits;
    op.args.push_back(decode_arg(instruction.operands[packs ? 0 : 1], program, instruction, t));
    for (const ptx::Operand& part : vector.parts) {
        const Arg arg = decode_arg(part, program, instruction, bits_type(bits));
        if (!packs && arg.form != Arg::Form::Register && arg.form != Arg::Form::None)
            refuse(instruction, program, "the destination is no register");
        op.args.push_back(arg);
    }
    op.run = packs ? pack : unpack;
}

void decode_mov(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    expect_operands(instruction, program, 2, 2);
    const auto is_vector = [&](int i) {
        return instruction.operands[i].form == ptx::Operand::Form::Vector;
    };
    if (is_vector(0) && is_vector(1))
        refuse(instruction, program, "no such form");
    if (is_vector(0) || is_vector(1))
        return decode_vector(instruction, program, op, t, is_vector(1));
    switch (t.bits * t.packed) {
    case 1: op.run = [](Exec& x) { store_mask(x, x.op.args[0], load_mask(x, x.op.args[1])); }; break;
    case 16: op.run = copy<uint16_t>; break;
    case 32: op.run = copy<uint32_t>; break;
    case 64: op.run = copy<uint64_t>; break;
    case 128: op.run = copy_wide; break;
    default: refuse(instruction, program, "no such form");
    }
    decode_values(instruction, program, op, {t, t});
    if (op.run == copy_wide && op.args[1].form != Arg::Form::Register)
        refuse(instruction, program, "no such form");
    if (op.args[0].form != Arg::Form::Register)
        refuse(instruction, program, "the destination is no register");
}

}  // namespace

void add_move(DecoderTable& table) { table.by_opcode["mov"] = decode_mov; }

}  // namespace emu
