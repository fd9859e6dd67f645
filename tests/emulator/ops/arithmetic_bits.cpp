// Bit fields, counts and byte permutation (ISA 9.7.1.13-22, 9.7.9.7).
#include "ops/arithmetic.hpp"

#include <algorithm>
#include <bit>

namespace emu {
namespace {

bool only_bits(const ptx::Type& t) { return t.kind == ptx::Kind::Bits && t.packed == 1; }

struct Popc {
    template <class T>
    static uint32_t of(T a)
    {
        return std::popcount(a);
    }
};
struct Clz {
    template <class T>
    static uint32_t of(T a)
    {
        return std::countl_zero(a);
    }
};
struct Brev {
    template <class T>
    static T of(T a)
    {
        T out = 0;
        for (size_t i = 0; i < 8 * sizeof(T); ++i)
            out |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
        return out;
    }
};
// Position of the highest bit that differs from the sign; all ones if there is none.
template <bool Amount>
struct Bfind {
    template <class T>
    static uint32_t of(T a)
    {
        using U = std::make_unsigned_t<T>;
        const U bits = a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
        if (bits == 0)
            return ~0u;
        return Amount ? std::countl_zero(bits) : 8 * sizeof(T) - 1 - std::countl_zero(bits);
    }
};
struct Fns {
    static uint32_t of(uint32_t mask, uint32_t base, int32_t offset)
    {
        if (base > 31)
            return ~0u;
        if (offset == 0)
            return mask >> base & 1 ? base : ~0u;
        int left = offset > 0 ? offset : -offset;
        for (int at = static_cast<int>(base); at >= 0 && at<32; at += offset> 0 ? 1 : -1)
            if (mask >> at & 1 && --left == 0)
                return at;
        return ~0u;
    }
};

// Positions and lengths count in their low 8 bits (ISA 9.7.1.20); on an H200 only for 32-bit fields, the
// 64-bit forms take them whole.
template <int Width>
uint32_t field_operand(uint32_t value)
{
    return Width == 32 ? value & 255 : std::min(value, 255u);
}

template <class T>
void extract_field(Exec& x)
{
    constexpr uint32_t width = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    Lanes<T> a, d;
    Lanes<uint32_t> b, c;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], c);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const uint32_t at = field_operand<width>(b[lane]), length = field_operand<width>(c[lane]);
        U value = length == 0 || at >= width ? 0 : static_cast<U>(a[lane]) >> at;
        if (length < width)
            value &= (U{1} << length) - 1;
        if (std::is_signed_v<T> && length) {
            const uint32_t sign = std::min(at + length - 1, width - 1);
            if (static_cast<U>(a[lane]) >> sign & 1) {
                const uint32_t filled = at >= width ? 0 : std::min(length, width - at);
                value |= filled < width ? ~U{0} << filled : U{0};
            }
        }
        d[lane] = static_cast<T>(value);
    }
    store_lanes(x, x.op.args[0], d);
}

template <class T>
void insert_field(Exec& x)
{
    constexpr uint32_t width = 8 * sizeof(T);
    Lanes<T> a, b, d;
    Lanes<uint32_t> c, e;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], c);
    load_lanes(x, x.op.args[4], e);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const uint32_t at = field_operand<width>(c[lane]), length = field_operand<width>(e[lane]);
        T mask = length >= width ? ~T{0} : (T{1} << length) - 1;
        mask = at >= width ? 0 : mask << at;
        const T moved = at >= width ? 0 : a[lane] << at;
        d[lane] = (b[lane] & ~mask) | (moved & mask);
    }
    store_lanes(x, x.op.args[0], d);
}

void decode_field(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    const bool insert = instruction.opcode == "bfi", is_signed = t.kind == ptx::Kind::Signed;
    if (!is_integer(t) || t.packed > 1 || (t.bits != 32 && t.bits != 64) || insert != only_bits(t))
        refuse(instruction, program, "no such form");
    if (insert) {
        op.run = t.bits == 32 ? insert_field<uint32_t> : insert_field<uint64_t>;
        return decode_values(instruction, program, op, {t, t, t, bits_type(32), bits_type(32)});
    }
    if (t.bits == 32)
        op.run = is_signed ? extract_field<int32_t> : extract_field<uint32_t>;
    else
        op.run = is_signed ? extract_field<int64_t> : extract_field<uint64_t>;
    decode_values(instruction, program, op, {t, t, bits_type(32), bits_type(32)});
}

// popc, clz, bfind, brev: the result has 32 bits but for brev.
void decode_count(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool amount = m.take("shiftamt");
    const ptx::Type t = m.type();
    m.done();
    const bool wide = t.bits == 64, is_signed = t.kind == ptx::Kind::Signed;
    const std::string& name = instruction.opcode;
    if ((t.bits != 32 && !wide) || t.packed > 1 || (amount && name != "bfind"))
        refuse(instruction, program, "no such form");
    if (name == "bfind" && is_signed && !only_bits(t))
        op.run =
            wide ? amount ? unary<Bfind<true>, int64_t, uint32_t> : unary<Bfind<false>, int64_t, uint32_t>
            : amount ? unary<Bfind<true>, int32_t, uint32_t>
                     : unary<Bfind<false>, int32_t, uint32_t>;
    else if (name == "bfind" && t.kind == ptx::Kind::Unsigned)
        op.run =
            wide ? amount ? unary<Bfind<true>, uint64_t, uint32_t> : unary<Bfind<false>, uint64_t, uint32_t>
            : amount ? unary<Bfind<true>, uint32_t, uint32_t>
                     : unary<Bfind<false>, uint32_t, uint32_t>;
    else if (only_bits(t) && name == "popc")
        op.run = wide ? unary<Popc, uint64_t, uint32_t> : unary<Popc, uint32_t>;
    else if (only_bits(t) && name == "clz")
        op.run = wide ? unary<Clz, uint64_t, uint32_t> : unary<Clz, uint32_t>;
    else if (only_bits(t) && name == "brev")
        op.run = wide ? unary<Brev, uint64_t> : unary<Brev, uint32_t>;
    decode_values(instruction, program, op, {name == "brev" ? t : bits_type(32), t});
}

void decode_fns(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    if (t.bits != 32 || !only_bits(t))
        refuse(instruction, program, "no such form");
    op.run = [](Exec& x) {
        Lanes<uint32_t> mask, base, d;
        Lanes<int32_t> offset;
        load_lanes(x, x.op.args[1], mask);
        load_lanes(x, x.op.args[2], base);
        load_lanes(x, x.op.args[3], offset);
        for (int lane = 0; lane < warp_lanes; ++lane)
            d[lane] = Fns::of(mask[lane], base[lane], offset[lane]);
        store_lanes(x, x.op.args[0], d);
    };
    decode_values(instruction, program, op, {t, t, t, t});
}

// imm: wrap (else clamp), signed.
void extend_field(Exec& x)
{
    Lanes<uint32_t> a, b, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const uint32_t bits = b[lane] & 31;
        const bool whole = !x.op.imm[0] && b[lane] >= 32;
        const uint32_t above = whole ? 0 : ~0u << bits;
        const bool negative = x.op.imm[1] && !whole && bits && a[lane] >> (bits - 1) & 1;
        d[lane] = (a[lane] & ~above) | (negative ? above : 0);
    }
    store_lanes(x, x.op.args[0], d);
}

// imm: wrap (else clamp).
void field_mask(Exec& x)
{
    Lanes<uint32_t> a, b, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const bool clamp = !x.op.imm[0];
        const uint32_t at = a[lane] & 31, width = b[lane] & 31;
        const uint32_t from = clamp && a[lane] >= 32 ? 0 : ~0u << at;
        const bool to_the_end = at + width >= 32 || (clamp && (a[lane] >= 32 || b[lane] >= 32));
        const uint32_t beyond = to_the_end ? 0 : ~0u << (at + width);
        d[lane] = from & ~(width == 0 && !to_the_end ? ~0u : beyond);
    }
    store_lanes(x, x.op.args[0], d);
}

void decode_extension(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const int mode = m.take_one({"clamp", "wrap"});
    const ptx::Type t = m.type();
    m.done();
    const bool mask = instruction.opcode == "bmsk";
    if (mode < 0 || t.bits != 32 || t.packed > 1 || !is_integer(t) || mask != only_bits(t))
        refuse(instruction, program, "no such form");
    op.imm[0] = mode;
    op.imm[1] = t.kind == ptx::Kind::Signed;
    op.run = mask ? field_mask : extend_field;
    decode_values(instruction, program, op, {t, t, bits_type(32)});
}

// imm: mode of .f4e and so on, or -1.
void permute(Exec& x)
{
    static constexpr uint16_t modes[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
        {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
        {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
        {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
        {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
        {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
    };
    Lanes<uint32_t> a, b, c, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], c);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const uint64_t bytes = uint64_t{b[lane]} << 32 | a[lane];
        const uint32_t control = x.op.imm[0] < 0 ? c[lane] : modes[x.op.imm[0]][c[lane] & 3];
        uint32_t out = 0;
        for (int i = 0; i < 4; ++i) {
            const uint32_t select = control >> (4 * i) & 15;
            uint32_t byte = bytes >> (8 * (select & 7)) & 255;
            if (select & 8)
                byte = byte & 128 ? 255 : 0;
            out |= byte << (8 * i);
        }
        d[lane] = out;
    }
    store_lanes(x, x.op.args[0], d);
}

void decode_permute(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    op.imm[0] = m.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    m.done();
    if (t.bits != 32 || !only_bits(t))
        refuse(instruction, program, "no such form");
    op.run = permute;
    decode_values(instruction, program, op, {t, t, t, t});
}

}  // namespace

void add_bits(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["bfe"] = t["bfi"] = decode_field;
    t["szext"] = t["bmsk"] = decode_extension;
    t["popc"] = t["clz"] = t["bfind"] = t["brev"] = decode_count;
    t["fns"] = decode_fns;
    t["prmt"] = decode_permute;
}

}  // namespace emu
