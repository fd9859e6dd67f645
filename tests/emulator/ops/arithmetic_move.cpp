// mov (ISA 9.7.9.3-4): copies, also of vectors, addresses, special registers, packing and unpacking.
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

constexpr int most_elements = 4;

// args: the destinations, then the sources, which may be the same registers in another order.
void copy_vector(Exec& x)
{
    const size_t count = x.op.args.size() / 2;
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        uint64_t values[most_elements];
        for (size_t i = 0; i < count; ++i)
            values[i] = lane_value(x, x.op.args[count + i], lane);
        for (size_t i = 0; i < count; ++i)
            set_lane(x, x.op.args[i], lane, values[i]);
    }
}

// The elements of a vector, of a special register such as %tid, or of a literal, which fills them all.
std::vector<ptx::Operand> elements_of(const ptx::Operand& operand, size_t count)
{
    using Form = ptx::Operand::Form;
    if (operand.form == Form::Vector)
        return operand.parts;
    if (operand.form != Form::Immediate && operand.form != Form::Special)
        return {};
    std::vector<ptx::Operand> elements(count, operand);
    for (size_t i = 0; operand.form == Form::Special && i < count; ++i) {
        if (i < 3) {
            elements[i].name += std::string(".") + "xyz"[i];
        } else {
            elements[i] = {};
            elements[i].form = Form::Immediate;  // zero
        }
    }
    return elements;
}

// mov.v4.u32 a, %tid;
void decode_vector_copy(const ptx::Instruction& instruction, Program& program, Op& op, const ptx::Type& t,
                        size_t count)
{
    const ptx::Operand& to = instruction.operands[0];
    const std::vector<ptx::Operand> from = elements_of(instruction.operands[1], count);
    if (to.form != ptx::Operand::Form::Vector || to.parts.size() != count || from.size() != count ||
        t.bytes() > 8)
        refuse(instruction, program, "no such form");
    for (const ptx::Operand& part : to.parts)
        op.args.push_back(decode_arg(part, program, instruction, t));
    for (const ptx::Operand& part : from)
        op.args.push_back(decode_arg(part, program, instruction, t));
    for (size_t i = 0; i < 2 * count; ++i)
        if (op.args[i].form == Arg::Form::None || (i < count && op.args[i].form != Arg::Form::Register))
            refuse(instruction, program, "the destination is no register, or there is no source");
    op.run = copy_vector;
}

void decode_mov(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const int vector = m.take_one({"v2", "v4"});
    const ptx::Type t = m.type();
    m.done();
    expect_operands(instruction, program, 2, 2);
    const auto is_vector = [&](int i) {
        return instruction.operands[i].form == ptx::Operand::Form::Vector;
    };
    if (vector >= 0)
        return decode_vector_copy(instruction, program, op, t, size_t{2} << vector);
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
