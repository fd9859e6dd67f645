// Opcodes that exist for integers and floats: the last type decides.
#include "ops/arithmetic.hpp"

namespace emu {
namespace {

void decode_either(const ptx::Instruction& instruction, Program& program, Op& op)
{
    if (instruction.has("cc"))
        return decode_carry(instruction, program, op);
    ptx::Type type;
    for (const std::string& modifier : instruction.modifiers)
        if (ptx::parse_type(modifier, type))
            return is_floating(type) ? decode_float(instruction, program, op)
                                     : decode_integer(instruction, program, op);
    refuse(instruction, program, "no type");
}

}  // namespace

void add_arithmetic(DecoderTable& table)
{
    add_integer(table);
    add_product(table);
    add_carry(table);
    add_logic(table);
    add_bits(table);
    add_float(table);
    add_compare(table);
    add_move(table);
    add_conversion(table);
    for (const char* opcode : {"add", "sub", "mul", "mad", "div", "abs", "neg", "min", "max"})
        table.by_opcode[opcode] = decode_either;
}

}  // namespace emu
