// Calls of what every kernel may call without defining it: vprintf and __assertfail. Functions with bodies
// have been inlined by the parser.
#include "ops/control.hpp"
#include "ops/lanes.hpp"

#include <bit>
#include <cstdio>

namespace emu {
namespace {

// args: the local .param variables of the arguments; imm: that of the result, or -1.
uint64_t parameter(Exec& x, size_t index, int lane)
{
    const uint64_t offset = x.op.args[index].constant;
    const int bytes = index < 8 ? static_cast<int>(x.op.wide >> (8 * index) & 255) : 8;
    uint64_t value = 0;
    std::memcpy(&value, resolve(x, ptx::Space::Local, offset, bytes, 1, lane).bytes, bytes);
    return value;
}

std::string text_at(Exec& x, uint64_t address, int lane)
{
    std::string text;
    for (char c; (c = static_cast<char>(*resolve(x, ptx::Space::None, address, 1, 1, lane).bytes));
         ++address)
        text += c;
    return text;
}

// One conversion of printf with its argument, which lies in the buffer with its own alignment.
std::string formatted(Exec& x, const std::string& directive, uint64_t& at, int lane)
{
    const char kind = directive.back();
    const bool wide = directive.find_first_of("lzjt") != std::string::npos ||
                      std::string("fFeEgGaAps").find(kind) != std::string::npos;
    const int bytes = wide ? 8 : 4;
    at = (at + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    std::memcpy(&value, resolve(x, ptx::Space::None, at, bytes, bytes, lane).bytes, bytes);
    at += bytes;
    const std::string plain = directive.substr(0, directive.find_first_of("hlzjtL"));
    char out[512];
    if (kind == 's') {
        std::snprintf(out, sizeof out, directive.c_str(), text_at(x, value, lane).c_str());
    } else if (std::string("fFeEgGaA").find(kind) != std::string::npos) {
        std::snprintf(out, sizeof out, directive.c_str(), std::bit_cast<double>(value));
    } else if (kind == 'c') {
        std::snprintf(out, sizeof out, directive.c_str(), static_cast<int>(value));
    } else if (kind == 'p') {
        std::snprintf(out, sizeof out, "0x%llx", static_cast<unsigned long long>(value));
    } else {
        std::string format = plain.back() == kind ? plain.substr(0, plain.size() - 1) : plain;
        format += std::string("ll") + kind;
        const bool negative = !wide && (kind == 'd' || kind == 'i');
        std::snprintf(out, sizeof out, format.c_str(),
                      negative ? static_cast<long long>(static_cast<int32_t>(value))
                               : static_cast<long long>(value));
    }
    return out;
}

void print(Exec& x)
{
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const std::string format = text_at(x, parameter(x, 0, lane), lane);
        uint64_t at = parameter(x, 1, lane);
        std::string out;
        for (size_t i = 0; i < format.size(); ++i) {
            const size_t end =
                format[i] == '%' ? format.find_first_of("diouxXcsfFeEgGaAp%", i + 1) : format.npos;
            if (end == format.npos) {
                out += format[i];
                continue;
            }
            out += format[end] == '%' ? "%" : formatted(x, format.substr(i, end - i + 1), at, lane);
            i = end;
        }
        std::fputs(out.c_str(), stdout);
        if (x.op.imm[0] >= 0) {
            const auto count = static_cast<int32_t>(out.size());
            std::memcpy(resolve(x, ptx::Space::Local, x.op.imm[0], 4, 4, lane).bytes, &count, 4);
        }
    }
}

void fail(Exec& x)
{
    const int lane = std::countr_zero(x.lanes);
    x.fault("assert", "assertion failed: " + text_at(x, parameter(x, 0, lane), lane) + ", " +
                          text_at(x, parameter(x, 1, lane), lane) + ":" +
                          std::to_string(parameter(x, 2, lane)));
}

int local_offset(const ptx::Instruction& instruction, const Program& program, const ptx::Operand& operand,
                 int& bytes)
{
    if (operand.form != ptx::Operand::Form::Symbol || operand.space != ptx::Space::Local)
        refuse(instruction, program, "parameters of calls must be .param variables");
    bytes = static_cast<int>(std::min<int64_t>(8, program.kernel->local[operand.index].bytes));
    return static_cast<int>(program.kernel->local[operand.index].offset);
}

void decode_call(const ptx::Instruction& instruction, Program& program, Op& op)
{
    using Form = ptx::Operand::Form;
    Modifiers m(instruction, program);
    m.take("uni");
    m.done();
    std::string name;
    int bytes = 0;
    op.imm[0] = -1;
    for (const ptx::Operand& operand : instruction.operands) {
        if (operand.form == Form::Name && name.empty()) {
            name = operand.name;
        } else if (operand.form == Form::Vector && name.empty() && operand.parts.size() == 1) {
            op.imm[0] = local_offset(instruction, program, operand.parts[0], bytes);
        } else if (operand.form == Form::Vector && !name.empty()) {
            for (const ptx::Operand& part : operand.parts) {
                Arg& arg = op.args.emplace_back();
                arg.form = Arg::Form::Constant;
                arg.constant = local_offset(instruction, program, part, bytes);
                op.wide |=
                    op.args.size() <= 8 ? static_cast<uint64_t>(bytes) << (8 * (op.args.size() - 1)) : 0;
            }
        }
    }
    if (name == "vprintf" && op.args.size() == 2)
        op.run = print;
    else if (name == "__assertfail" && op.args.size() == 5)
        op.run = fail;
    else
        refuse(instruction, program, "no function '" + name + "' to call");
}

}  // namespace

void add_calls(DecoderTable& table) { table.by_opcode["call"] = decode_call; }

}  // namespace emu
