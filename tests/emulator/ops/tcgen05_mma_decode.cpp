// The forms of tcgen05.mma: kinds, scales, masks.
#include "ops/tcgen05.hpp"

namespace emu {

namespace {

void decode_kind(const ptx::Instruction& instruction, const Program& program, Op& op)
{
    Modifiers m(instruction, program);
    m.take("mma");
    m.take("ws");
    m.ignore({"cta_group::", op.imm[imm_weights] ? "collector::b" : "collector::a::"});
    op.imm[imm_kind] = m.take_one({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8", "kind::mxf8f6f4",
                                   "kind::mxf4", "kind::mxf4nvf4"});
    const auto kind = static_cast<TensorKind>(op.imm[imm_kind]);
    if (op.imm[imm_kind] < 0)
        refuse(instruction, program, "needs a .kind");
    if (is_scaled(kind) != m.take("block_scale") || (is_scaled(kind) && op.imm[imm_weights]))
        refuse(instruction, program, "this kind and .block_scale or .ws do not go together");
    if (is_scaled(kind)) {
        const int vector =
            m.take_one({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block32", "block16"});
        const int usual = kind == TensorKind::Mxf8f6f4 ? 1 : 2;
        op.wide = vector == 4 ? 4 : vector == 3 || vector < 0 ? usual : 1 << vector;
        const bool good = kind == TensorKind::Mxf4nvf4 ? op.wide >= 2 && vector >= 0
                                                       : op.wide == static_cast<uint64_t>(usual);
        if (!good)
            refuse(instruction, program, "no such scales for this kind");
    }
    m.done();
}

// [scale-A], [scale-B]: base and offset of each.
void decode_scales(const ptx::Instruction& instruction, Program& program, Op& op)
{
    for (const size_t place : {4, 5}) {
        if (instruction.operands[place].form != ptx::Operand::Form::Address)
            refuse(instruction, program, "addresses of the scales are expected");
        const AddressArg address = decode_address(instruction.operands[place], program);
        Arg offset;
        offset.form = Arg::Form::Constant;
        offset.constant = static_cast<uint64_t>(address.offset);
        op.args.push_back(address.base);
        op.args.push_back(offset);
    }
}

// What follows enable-input-d; only the plain form scales.
void decode_scale(const ptx::Instruction& instruction, Program& program, Op& op,
                  const ptx::Operand& operand)
{
    const auto kind = static_cast<TensorKind>(op.imm[imm_kind]);
    if (op.imm[imm_weights])
        refuse(instruction, program, "zero-column masks are not supported");
    if (kind != TensorKind::F16 && kind != TensorKind::Tf32)
        refuse(instruction, program, "scale-input-d is for .kind::f16 and .kind::tf32");
    op.imm[imm_scale] = immediate(instruction, program, operand);
    if (op.imm[imm_scale] < 0 || op.imm[imm_scale] > 15)
        refuse(instruction, program, "scale-input-d must be from 0 to 15");
}

}  // namespace

void decode_tensor_product(const ptx::Instruction& instruction, Program& program, Op& op)
{
    const bool weights = instruction.has("ws");
    op.imm[imm_group] = cta_group_of(instruction, program);
    op.imm[imm_weights] = weights;
    decode_kind(instruction, program, op);
    const bool scaled = is_scaled(static_cast<TensorKind>(op.imm[imm_kind]));
    if (weights && op.imm[imm_group] != 1)
        refuse(instruction, program, ".ws needs .cta_group::1");

    const auto& list = instruction.operands;
    expect_operands(instruction, program, scaled ? 7 : 5, 7);
    op.address = decode_address(list[0], program);
    op.imm[imm_a_in_tmem] = list[1].form == ptx::Operand::Form::Address;
    const ptx::Type wide{ptx::Kind::Bits, 64, 1}, word{ptx::Kind::Bits, 32, 1};
    op.args = {decode_arg(list[2], program, instruction, wide),
               decode_arg(list[3], program, instruction, word)};
    size_t next = scaled ? 6 : 4;
    const bool masked = !scaled && list[next].form == ptx::Operand::Form::Vector;
    next += masked;
    if (next >= list.size() ||
        (list[next].form == ptx::Operand::Form::Register && !is_predicate(list[next], program)))
        refuse(instruction, program, "enable-input-d must be a predicate");
    op.args.push_back(decode_arg(list[next++], program));
    op.args.emplace_back();
    if (op.imm[imm_a_in_tmem])
        op.address2 = decode_address(list[1], program);
    else
        op.args[arg_a] = decode_arg(list[1], program, instruction, wide);
    if (scaled)
        decode_scales(instruction, program, op);
    if (masked) {
        op.imm[imm_masks] = static_cast<int>(list[4].parts.size());
        if (weights || op.imm[imm_masks] != 4 * op.imm[imm_group])
            refuse(instruction, program, "wrong number of disable-output-lane masks");
        for (const ptx::Operand& part : list[4].parts)
            op.args.push_back(decode_arg(part, program, instruction, word));
    }
    if (next < list.size())
        decode_scale(instruction, program, op, list[next++]);
    if (next != list.size())
        refuse(instruction, program, "too many operands");
    op.run = run_tensor_product;
}

}  // namespace emu
