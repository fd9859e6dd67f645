// Extended precision (ISA 9.7.2): every lane has a carry bit that .cc sets and addc, subc, madc read. A
// subtraction adds the complement, so that its carry is no borrow: seen where addc follows sub.cc.
#include "ops/arithmetic.hpp"
#include "ops/wide.hpp"

namespace emu {
namespace {

enum Carry { add, subtract, mad_low, mad_high };

// imm: kind, reads the carry, writes it.
template <class T>
void with_carry(Exec& x)
{
    using Wide = Unsigned128;
    const auto& args = x.op.args;
    const int kind = x.op.imm[0];
    Lanes<T> a, b, c, d;
    load_lanes(x, args[1], a);
    load_lanes(x, args[2], b);
    if (kind >= mad_low)
        load_lanes(x, args[3], c);
    Mask out = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const Wide carry = x.op.imm[1] ? x.warp.carry >> lane & 1 : kind == subtract;
        Wide left = a[lane], right = kind == subtract ? static_cast<T>(~b[lane]) : b[lane];
        if (kind >= mad_low) {
            left = static_cast<T>(Wide{a[lane]} * b[lane] >> (kind == mad_high ? 8 * sizeof(T) : 0));
            right = c[lane];
        }
        const Wide result = left + right + carry;
        d[lane] = static_cast<T>(result);
        out |= static_cast<Mask>(result >> (8 * sizeof(T)) & 1) << lane;
    }
    store_lanes(x, args[0], d);
    if (x.op.imm[2])
        x.warp.carry = (x.warp.carry & ~x.lanes) | (out & x.lanes);
}

// The high half of a signed product.
template <class T>
void signed_high_with_carry(Exec& x)
{
    using Signed = std::make_signed_t<T>;
    Lanes<Signed> a, b;
    Lanes<T> c, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], c);
    Mask out = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const auto high = static_cast<T>(Int128{a[lane]} * b[lane] >> (8 * sizeof(T)));
        const Unsigned128 sum =
            static_cast<Unsigned128>(high) + c[lane] + (x.op.imm[1] ? x.warp.carry >> lane & 1 : 0);
        d[lane] = static_cast<T>(sum);
        out |= static_cast<Mask>(sum >> (8 * sizeof(T)) & 1) << lane;
    }
    store_lanes(x, x.op.args[0], d);
    if (x.op.imm[2])
        x.warp.carry = (x.warp.carry & ~x.lanes) | (out & x.lanes);
}

}  // namespace

void decode_carry(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const std::string& name = instruction.opcode;
    const bool mad = name[0] == 'm';
    const int part = mad ? m.take_one({"lo", "hi"}) : 0;
    op.imm[0] = mad ? part == 1 ? mad_high : mad_low : name[0] == 's' ? subtract : add;
    op.imm[1] = name.back() == 'c';
    op.imm[2] = m.take("cc");
    const ptx::Type t = m.type();
    m.done();
    if (part < 0 || (t.bits != 32 && t.bits != 64) || !is_integer(t) || t.packed > 1)
        refuse(instruction, program, "no such form");
    if (part == 1 && t.kind == ptx::Kind::Signed)
        op.run = t.bits == 32 ? signed_high_with_carry<uint32_t> : signed_high_with_carry<uint64_t>;
    else
        op.run = t.bits == 32 ? with_carry<uint32_t> : with_carry<uint64_t>;
    if (mad)
        decode_values(instruction, program, op, {t, t, t, t});
    else
        decode_values(instruction, program, op, {t, t, t});
}

void add_carry(DecoderTable& table)
{
    for (const char* opcode : {"addc", "subc", "madc"})
        table.by_opcode[opcode] = decode_carry;
}

}  // namespace emu
