// Kernel -> Program: places for registers, operands, the handler of every instruction.
#include "core/registers.hpp"
#include "core/special.hpp"
#include "ptx/lexer.hpp"

#include <unordered_map>

namespace emu {
namespace {

[[noreturn]] void refuse_here(const Program& program, const std::string& why)
{
    refuse(*program.decoding, program, why);
}

Arg decode_register(int index, const Program& program)
{
    const ptx::Type& type = program.kernel->registers[index].type;
    const int bits = type.bits * type.packed;
    Arg arg;
    arg.form = Arg::Form::Register;
    arg.reg = program.register_offset[index];
    arg.bits = static_cast<uint8_t>(bits);
    arg.width = bits == 1 ? 0 : bits <= 32 ? 4 : bits == 64 ? 8 : 16;
    return arg;
}

// An address in its own space.
Arg decode_symbol(const ptx::Operand& operand, const Program& program)
{
    const ptx::Kernel& kernel = *program.kernel;
    Arg arg;
    arg.form = Arg::Form::Constant;
    arg.width = 8;
    arg.bits = 64;
    switch (operand.space) {
    case ptx::Space::Param: arg.constant = kernel.parameters[operand.index].offset; break;
    case ptx::Space::Local: arg.constant = kernel.local[operand.index].offset; break;
    case ptx::Space::Shared:
        arg.form = Arg::Form::Special;
        arg.special = special_shared_address;
        arg.constant = kernel.shared[operand.index].offset;
        break;
    default: arg.constant = program.global_address[operand.index];
    }
    arg.constant += operand.value;
    return arg;
}

const char* form_name(ptx::Operand::Form form)
{
    using Form = ptx::Operand::Form;
    switch (form) {
    case Form::Address: return "an address";
    case Form::Composite: return "a list in brackets";
    case Form::Vector: return "a vector";
    case Form::Label: return "a label";
    case Form::Name: return "a name";
    default: return "this operand";
    }
}

// Bits of an immediate as a value of the type.
uint64_t immediate_bits(const ptx::Operand& operand, const Program& program, const ptx::Type& type)
{
    const bool floating = type.kind == ptx::Kind::Float || type.kind == ptx::Kind::Bfloat;
    const int bits = type.bits * type.packed;
    if (operand.is_float) {
        if ((!floating && type.kind != ptx::Kind::Bits) || type.packed > 1 || type.bits < 32 ||
            type.bits > 64)
            refuse_here(program, "a floating literal where the type is another");
        return type.bits == 32 ? ptx::narrow_float(operand.value) : operand.value;
    }
    if (floating && type.bits > 16)
        refuse_here(program, "an integer literal where a floating one is needed");
    return bits >= 64 ? operand.value : operand.value & ((uint64_t{1} << bits) - 1);
}

std::string full_name(const ptx::Instruction& instruction)
{
    std::string name = instruction.opcode;
    for (const std::string& modifier : instruction.modifiers)
        name += "." + modifier;
    return name;
}

Decoder find_decoder(const ptx::Instruction& instruction)
{
    const auto& table = decoders().by_opcode;
    if (!instruction.modifiers.empty())
        if (const auto found = table.find(instruction.opcode + "." + instruction.modifiers[0]);
            found != table.end())
            return found->second;
    const auto found = table.find(instruction.opcode);
    return found == table.end() ? nullptr : found->second;
}

}  // namespace

// Never destroyed: programs call the driver, and so run kernels, from destructors of static objects.
const DecoderTable& decoders()
{
    static const DecoderTable* const table = [] {
        auto* t = new DecoderTable;
        add_arithmetic(*t);
        add_memory(*t);
        add_control(*t);
        add_matrix(*t);
        add_async(*t);
        add_wgmma(*t);
        add_tcgen05(*t);
        return t;
    }();
    return *table;
}

void refuse(const ptx::Instruction& instruction, const Program& program, const std::string& why)
{
    throw ptx::Error(ptx::quote(*program.module, instruction.line, why));
}

Arg decode_arg(const ptx::Operand& operand, const Program& program)
{
    using Form = ptx::Operand::Form;
    Arg arg;
    switch (operand.form) {
    case Form::Sink: return arg;
    case Form::Register:
        arg = decode_register(operand.index, program);
        arg.negated = operand.negated;
        return arg;
    case Form::Symbol: return decode_symbol(operand, program);
    case Form::Immediate:
        arg.form = Arg::Form::Constant;
        arg.width = 8;
        arg.bits = 64;
        arg.constant = operand.is_float ? ptx::narrow_float(operand.value) : operand.value;
        return arg;
    case Form::Special:
        arg.form = Arg::Form::Special;
        arg.special = find_special(operand.name);
        if (arg.special < 0)
            refuse_here(program, "'" + operand.name + "' is not declared");
        arg.bits = static_cast<uint8_t>(special_bits(arg.special));
        arg.width = arg.bits == 1 ? 0 : arg.bits / 8;
        return arg;
    default:
        refuse_here(program, std::string(form_name(operand.form)) + " '" + operand.name +
                                 "' where a value is needed");
    }
}

Arg decode_arg(const ptx::Operand& operand, const Program& program, const ptx::Instruction& instruction,
               const ptx::Type& type)
{
    Arg arg = decode_arg(operand, program);
    const int bits = type.bits * type.packed;
    if (arg.form == Arg::Form::Register && arg.bits != bits)
        refuse(instruction, program,
               "register of " + std::to_string(arg.bits) + " bits where " + std::to_string(bits) +
                   " are needed");
    if (arg.negated && type.kind != ptx::Kind::Predicate)
        refuse(instruction, program, "'!' needs a predicate");
    if (operand.form == ptx::Operand::Form::Immediate)
        arg.constant = immediate_bits(operand, program, type);
    return arg;
}

AddressArg decode_address(const ptx::Operand& operand, const Program& program)
{
    using Form = ptx::Operand::Form;
    AddressArg address;
    if (operand.form == Form::Composite)
        return decode_address(operand.parts.at(0), program);
    if (operand.form == Form::Address && !operand.parts.empty()) {
        address.base = decode_arg(operand.parts[0], program);
        address.offset = operand.value;
    } else if (operand.form == Form::Address) {
        address.base.form = Arg::Form::Constant;
        address.base.width = 8;
        address.base.bits = 64;
        address.base.constant = operand.value;
    } else {
        address.base = decode_arg(operand, program);
    }
    if (address.base.form == Arg::Form::None || address.base.width == 0 || address.base.width > 8)
        refuse_here(program, "no address");
    return address;
}

namespace {

Program prepare(const ptx::Module& module, const ptx::Kernel& kernel,
                const std::vector<uint64_t>& global_address)
{
    Program program;
    program.module = &module;
    program.kernel = &kernel;
    program.global_address = global_address;
    place_registers(program);
    program.ops.reserve(kernel.instructions.size());
    return program;
}

void decode_one(const ptx::Instruction& instruction, const std::string& name, Program& program, Op& op)
{
    program.decoding = &instruction;
    op.source = &instruction;
    op.line = instruction.line;
    if (instruction.guard >= 0)
        op.guard = program.register_offset[instruction.guard];
    op.guard_negated = instruction.guard_negated;
    const Decoder decoder = find_decoder(instruction);
    if (!decoder)
        refuse(instruction, program, "unknown instruction '" + name + "'");
    decoder(instruction, program, op);
    if (!op.run)
        refuse(instruction, program, "instruction form is not supported");
}

}  // namespace

Program decode(const ptx::Module& module, const ptx::Kernel& kernel,
               const std::vector<uint64_t>& global_address)
{
    Program program = prepare(module, kernel, global_address);
    std::unordered_map<std::string, int> names;
    for (const ptx::Instruction& instruction : kernel.instructions) {
        const std::string name = full_name(instruction);
        const auto [known, fresh] = names.emplace(name, static_cast<int>(program.names.size()));
        if (fresh)
            program.names.push_back(name);
        Op& op = program.ops.emplace_back();
        op.name = known->second;
        decode_one(instruction, name, program, op);
    }
    program.decoding = nullptr;
    return program;
}

constexpr size_t most_refused = 1000;  // that are listed of a kernel

std::vector<std::string> refusals(const ptx::Module& module, const ptx::Kernel& kernel,
                                  const std::vector<uint64_t>& global_address)
{
    Program program = prepare(module, kernel, global_address);
    std::vector<std::string> refused;
    for (const ptx::Instruction& instruction : kernel.instructions)
        try {
            decode_one(instruction, full_name(instruction), program, program.ops.emplace_back());
        } catch (const ptx::Error& error) {
            refused.push_back(error.what());
            if (refused.size() == most_refused)
                break;
        }
    return refused;
}

}  // namespace emu
