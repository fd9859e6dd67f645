// Integer products, with and without a sum (ISA 9.7.1.3-6, 9.7.1.10-12, 9.7.1.23-24).
#include "ops/arithmetic.hpp"
#include "ops/integers.hpp"

namespace emu {
namespace {

// 16-bit products must not become signed int ones.
template <class T>
T wrapped_product(T a, T b)
{
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T>
T high_product(T a, T b)
{
    using W = std::conditional_t<std::is_signed_v<T>, Int128, Unsigned128>;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b) >> (8 * sizeof(T)));
}

struct MulLo {
    template <class T>
    static T of(T a, T b)
    {
        return wrapped_product(a, b);
    }
};
struct MulHi {
    template <class T>
    static T of(T a, T b)
    {
        return high_product(a, b);
    }
};
struct MadLo {
    template <class T>
    static T of(T a, T b, T c)
    {
        return Add::of(wrapped_product(a, b), c);
    }
};
struct MadHi {
    template <class T>
    static T of(T a, T b, T c)
    {
        return Add::of(high_product(a, b), c);
    }
};
struct MadHiSat {
    template <class T>
    static T of(T a, T b, T c)
    {
        return saturate<T>(Int128{high_product(a, b)} + c);
    }
};
template <class R>
struct MulWide {
    template <class T>
    static R of(T a, T b)
    {
        return static_cast<R>(static_cast<R>(a) * static_cast<R>(b));
    }
    template <class T>
    static R of(T a, T b, R c)
    {
        return Add::of(of(a, b), c);
    }
};
struct Mul24Lo {
    template <class T>
    static T cut(T a)
    {
        return static_cast<T>(Wrap<T>(a) << 8) >> 8;
    }
    template <class T>
    static int64_t product(T a, T b)
    {
        return int64_t{cut(a)} * int64_t{cut(b)};
    }
    template <class T>
    static T of(T a, T b)
    {
        return static_cast<T>(product(a, b));
    }
    template <class T>
    static T of(T a, T b, T c)
    {
        return Add::of(of(a, b), c);
    }
};
struct Mul24Hi {
    template <class T>
    static T of(T a, T b)
    {
        return static_cast<T>(Mul24Lo::product(a, b) >> 16);
    }
    template <class T>
    static T of(T a, T b, T c)
    {
        return Add::of(of(a, b), c);
    }
};
struct Mad24HiSat {
    template <class T>
    static T of(T a, T b, T c)
    {
        return saturate<T>(Int128{Mul24Hi::of(a, b)} + c);
    }
};
struct Sad {
    template <class T>
    static T of(T a, T b, T c)
    {
        return Add::of(c, a < b ? Sub::of(b, a) : Sub::of(a, b));
    }
};

template <class F>
Handler ternary_of(const ptx::Type& t)
{
    const bool is_signed = t.kind == ptx::Kind::Signed;
    switch (t.bits) {
    case 16: return is_signed ? ternary<F, int16_t> : ternary<F, uint16_t>;
    case 32: return is_signed ? ternary<F, int32_t> : ternary<F, uint32_t>;
    case 64: return is_signed ? ternary<F, int64_t> : ternary<F, uint64_t>;
    default: return nullptr;
    }
}

Handler wide_handler(const ptx::Type& t, bool add)
{
    const bool is_signed = t.kind == ptx::Kind::Signed;
    if (t.bits == 16 && add)
        return is_signed ? ternary<MulWide<int32_t>, int16_t, int32_t>
                         : ternary<MulWide<uint32_t>, uint16_t, uint32_t>;
    if (t.bits == 16)
        return is_signed ? binary<MulWide<int32_t>, int16_t, int32_t>
                         : binary<MulWide<uint32_t>, uint16_t, uint32_t>;
    if (t.bits == 32 && add)
        return is_signed ? ternary<MulWide<int64_t>, int32_t, int64_t>
                         : ternary<MulWide<uint64_t>, uint32_t, uint64_t>;
    if (t.bits == 32)
        return is_signed ? binary<MulWide<int64_t>, int32_t, int64_t>
                         : binary<MulWide<uint64_t>, uint32_t, uint64_t>;
    return nullptr;
}

}  // namespace

void decode_product(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool add = instruction.opcode == "mad";
    const int part = m.take_one({"lo", "hi", "wide"});
    const bool saturating = m.take("sat");
    const ptx::Type t = m.type();
    m.done();
    ptx::Type result = t;
    if (part == 2) {
        result.bits = static_cast<uint8_t>(2 * t.bits);
        op.run = wide_handler(t, add);
    } else if (add) {
        op.run = saturating  ? ternary<MadHiSat, int32_t>
                 : part == 1 ? ternary_of<MadHi>(t)
                             : ternary_of<MadLo>(t);
    } else {
        op.run = part == 1 ? binary_of<MulHi>(t) : binary_of<MulLo>(t);
    }
    const bool signed_high = part == 1 && add && t.kind == ptx::Kind::Signed && t.bits == 32;
    if (part < 0 || t.packed > 1 || t.kind == ptx::Kind::Bits || (saturating && !signed_high))
        op.run = nullptr;
    if (add)
        decode_values(instruction, program, op, {result, t, t, result});
    else
        decode_values(instruction, program, op, {result, t, t});
}

namespace {

void decode_24(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool add = instruction.opcode == "mad24";
    const int part = m.take_one({"lo", "hi"});
    const bool saturating = m.take("sat");
    const ptx::Type t = m.type();
    m.done();
    const bool is_signed = t.kind == ptx::Kind::Signed;
    if (part < 0 || t.bits != 32 || t.packed > 1 || (saturating && !(is_signed && add && part == 1)))
        refuse(instruction, program, "no such form");
    if (saturating)
        op.run = ternary<Mad24HiSat, int32_t>;
    else if (add && part == 0)
        op.run = is_signed ? ternary<Mul24Lo, int32_t> : ternary<Mul24Lo, uint32_t>;
    else if (add)
        op.run = is_signed ? ternary<Mul24Hi, int32_t> : ternary<Mul24Hi, uint32_t>;
    else if (part == 0)
        op.run = is_signed ? binary<Mul24Lo, int32_t> : binary<Mul24Lo, uint32_t>;
    else
        op.run = is_signed ? binary<Mul24Hi, int32_t> : binary<Mul24Hi, uint32_t>;
    if (add)
        decode_values(instruction, program, op, {t, t, t, t});
    else
        decode_values(instruction, program, op, {t, t, t});
}

// dp4a: four byte products; dp2a: two of a half and a byte, the low or high pair of bytes. imm: signs,
// pair.
void dot_product(Exec& x)
{
    const bool halves = x.op.imm[2] >= 0;
    const auto element = [](uint32_t word, int i, int bits, bool is_signed) {
        const uint32_t value = word >> (i * bits) & ((1u << bits) - 1);
        return is_signed ? static_cast<int32_t>(value << (32 - bits)) >> (32 - bits)
                         : static_cast<int32_t>(value);
    };
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const auto a = static_cast<uint32_t>(lane_value(x, x.op.args[1], lane));
        const auto b = static_cast<uint32_t>(lane_value(x, x.op.args[2], lane));
        auto sum = static_cast<uint32_t>(lane_value(x, x.op.args[3], lane));
        for (int i = 0; i < (halves ? 2 : 4); ++i)
            sum += static_cast<uint32_t>(element(a, i, halves ? 16 : 8, x.op.imm[0])) *
                   static_cast<uint32_t>(element(b, halves ? i + 2 * x.op.imm[2] : i, 8, x.op.imm[1]));
        set_lane(x, x.op.args[0], lane, sum);
    }
}

void decode_dot(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    op.imm[2] = instruction.opcode == "dp2a" ? m.take_one({"lo", "hi"}) : -1;
    for (int i = 0; i < 2; ++i) {
        const ptx::Type t = m.type();
        if (t.bits != 32 || t.packed > 1 || !is_integer(t) || t.kind == ptx::Kind::Bits)
            refuse(instruction, program, "operands must be .u32 or .s32");
        op.imm[i] = t.kind == ptx::Kind::Signed;
    }
    m.done();
    if (instruction.opcode == "dp2a" && op.imm[2] < 0)
        refuse(instruction, program, "neither .lo nor .hi");
    decode_values(instruction, program, op, {bits_type(32), bits_type(32), bits_type(32), bits_type(32)});
    op.run = dot_product;
}

void decode_sad(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    op.run = ternary_of<Sad>(t);
    decode_values(instruction, program, op, {t, t, t, t});
}

}  // namespace

void add_product(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["mul24"] = t["mad24"] = decode_24;
    t["sad"] = decode_sad;
    t["dp4a"] = t["dp2a"] = decode_dot;
}

}  // namespace emu
