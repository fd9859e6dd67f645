// Logic and shifts (ISA 9.7.8).
#include "ops/arithmetic.hpp"

#include <algorithm>

namespace emu {
namespace {

struct And {
    template <class T>
    static T of(T a, T b)
    {
        return a & b;
    }
};
struct Or {
    template <class T>
    static T of(T a, T b)
    {
        return a | b;
    }
};
struct Xor {
    template <class T>
    static T of(T a, T b)
    {
        return a ^ b;
    }
};
struct Not {
    template <class T>
    static T of(T a)
    {
        return static_cast<T>(~a);
    }
};
struct Cnot {
    template <class T>
    static T of(T a)
    {
        return a == 0;
    }
};
// Shift counts are 32-bit values; more than the width shifts everything out.
struct Shl {
    template <class T>
    static T of(T a, uint32_t n)
    {
        return n < 8 * sizeof(T) ? static_cast<T>(a << n) : T{0};
    }
};
struct Shr {
    template <class T>
    static T of(T a, uint32_t n)
    {
        return static_cast<T>(n < 8 * sizeof(T) ? a >> n : a < 0 ? ~T{0} : T{0});
    }
};
template <class F, class T>
void shift(Exec& x)
{
    Lanes<T> a, d;
    Lanes<uint32_t> n;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], n);
    for (int lane = 0; lane < warp_lanes; ++lane)
        d[lane] = F::of(a[lane], n[lane]);
    store_lanes(x, x.op.args[0], d);
}

template <class F>
void logic_of_predicates(Exec& x)
{
    store_mask(x, x.op.args[0], F::of(load_mask(x, x.op.args[1]), load_mask(x, x.op.args[2])));
}

template <class F>
Handler logic_handler(const ptx::Type& t)
{
    switch (t.bits) {
    case 1: return logic_of_predicates<F>;
    case 16: return binary<F, uint16_t>;
    case 32: return binary<F, uint32_t>;
    case 64: return binary<F, uint64_t>;
    default: return nullptr;
    }
}

bool bits_or_predicate(const ptx::Type& t)
{
    return (t.kind == ptx::Kind::Bits || t.kind == ptx::Kind::Predicate) && t.packed == 1;
}

void decode_logic(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    if (bits_or_predicate(t)) {
        const char name = instruction.opcode[0];
        op.run = name == 'a'   ? logic_handler<And>(t)
                 : name == 'o' ? logic_handler<Or>(t)
                               : logic_handler<Xor>(t);
    }
    decode_values(instruction, program, op, {t, t, t});
}

void decode_not(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    const bool cnot = instruction.opcode == "cnot";
    if (bits_or_predicate(t) && t.bits == 1 && !cnot)
        op.run = [](Exec& x) { store_mask(x, x.op.args[0], ~load_mask(x, x.op.args[1])); };
    else if (bits_or_predicate(t) && t.bits == 16)
        op.run = cnot ? unary<Cnot, uint16_t> : unary<Not, uint16_t>;
    else if (bits_or_predicate(t) && t.bits == 32)
        op.run = cnot ? unary<Cnot, uint32_t> : unary<Not, uint32_t>;
    else if (bits_or_predicate(t) && t.bits == 64)
        op.run = cnot ? unary<Cnot, uint64_t> : unary<Not, uint64_t>;
    decode_values(instruction, program, op, {t, t});
}

void decode_shift(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    const bool is_signed = t.kind == ptx::Kind::Signed;
    if (!is_integer(t) || t.packed > 1)
        refuse(instruction, program, "no such form");
    if (instruction.opcode == "shl") {
        if (t.kind == ptx::Kind::Bits)
            op.run = t.bits == 16   ? shift<Shl, uint16_t>
                     : t.bits == 32 ? shift<Shl, uint32_t>
                     : t.bits == 64 ? shift<Shl, uint64_t>
                                    : nullptr;
    } else if (t.bits == 16) {
        op.run = is_signed ? shift<Shr, int16_t> : shift<Shr, uint16_t>;
    } else if (t.bits == 32) {
        op.run = is_signed ? shift<Shr, int32_t> : shift<Shr, uint32_t>;
    } else if (t.bits == 64) {
        op.run = is_signed ? shift<Shr, int64_t> : shift<Shr, uint64_t>;
    }
    decode_values(instruction, program, op, {t, t, bits_type(32)});
}

// imm: left, wrap (else clamp).
void funnel(Exec& x)
{
    Lanes<uint32_t> a, b, n, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], n);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const uint32_t count = x.op.imm[1] ? n[lane] & 31 : std::min(n[lane], 32u);
        const uint64_t both = uint64_t{b[lane]} << 32 | a[lane];
        d[lane] = static_cast<uint32_t>(x.op.imm[0] ? both << count >> 32 : both >> count);
    }
    store_lanes(x, x.op.args[0], d);
}

void decode_funnel(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const int side = m.take_one({"r", "l"}), mode = m.take_one({"clamp", "wrap"});
    const ptx::Type t = m.type();
    m.done();
    if (side < 0 || mode < 0 || t.bits != 32 || !bits_or_predicate(t))
        refuse(instruction, program, "no such form");
    op.imm[0] = side;
    op.imm[1] = mode;
    op.run = funnel;
    decode_values(instruction, program, op, {t, t, t, t});
}

// imm: the truth table.
void lop3(Exec& x)
{
    Lanes<uint32_t> a, b, c, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], c);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        uint32_t out = 0;
        for (int row = 0; row < 8; ++row)
            if (x.op.imm[0] >> row & 1)
                out |= (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) &
                       (row & 1 ? c[lane] : ~c[lane]);
        d[lane] = out;
    }
    store_lanes(x, x.op.args[0], d);
    if (x.op.imm[1] < 0)
        return;
    Mask any = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        any |= Mask{d[lane] != 0} << lane;
    const Mask q = load_mask(x, x.op.args[5]);
    store_mask(x, x.op.args[4], x.op.imm[1] ? any | q : any & q);
}

// "lop3.b32 d, a, b, c, table" and "lop3.BoolOp.b32 d|p, a, b, c, table, q".
void decode_lop3(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    op.imm[1] = m.take_one({"and", "or"});
    const ptx::Type t = m.type();
    m.done();
    const bool predicate = op.imm[1] >= 0;
    expect_operands(instruction, program, predicate ? 7 : 5, predicate ? 7 : 5);
    std::vector<ptx::Operand> operands = instruction.operands;
    if (t.bits != 32 || !bits_or_predicate(t))
        refuse(instruction, program, "no such form");
    ptx::Operand p;
    if (predicate) {
        p = operands[1];
        operands.erase(operands.begin() + 1);
    }
    for (int i = 0; i < 4; ++i)
        op.args.push_back(decode_arg(operands[i], program, instruction, t));
    const ptx::Operand& table = operands[4];
    if (table.form != ptx::Operand::Form::Immediate || table.value < 0 || table.value > 255)
        refuse(instruction, program, "the table must be a constant of 0 ... 255");
    op.imm[0] = static_cast<int32_t>(table.value);
    if (predicate) {
        op.args.push_back(decode_arg(p, program, instruction, predicate_type));
        op.args.push_back(decode_arg(operands[5], program, instruction, predicate_type));
    }
    op.run = lop3;
}

}  // namespace

void add_logic(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["and"] = t["or"] = t["xor"] = decode_logic;
    t["not"] = t["cnot"] = decode_not;
    t["shl"] = t["shr"] = decode_shift;
    t["shf"] = decode_funnel;
    t["lop3"] = decode_lop3;
}

}  // namespace emu
