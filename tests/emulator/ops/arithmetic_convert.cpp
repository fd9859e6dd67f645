// cvt (ISA 9.7.9.21): between integers, floats and the packed and small float formats.
#include "numerics/floats.hpp"
#include "ops/arithmetic.hpp"
#include "ops/wide.hpp"

#include <bit>
#include <cmath>

namespace emu {
namespace {

// Op::imm of a conversion; types as bits, sign and format.
enum CvtSlot { cvt_from, cvt_to, cvt_rounding, cvt_flags };
enum Flag { to_integral = 1, sat = 2, ftz = 4, relu = 8, satfinite = 16, from_signed = 32, to_signed = 64 };

// tf32 is a type to cvt alone.
struct End {
    ptx::Type type;  // of the register
    FormatId id = FormatId::F32;
    bool pair = false, floating = false;
};

uint64_t low_bits(uint64_t value, int bits)
{
    return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

int64_t extend(uint64_t value, int bits, bool is_signed)
{
    value = low_bits(value, bits);
    if (is_signed && bits < 64 && value >> (bits - 1) & 1)
        value |= ~uint64_t{0} << bits;
    return static_cast<int64_t>(value);
}

Int128 least(int bits, bool is_signed) { return is_signed ? -(Int128{1} << (bits - 1)) : 0; }

Int128 most(int bits, bool is_signed) { return (Int128{1} << (is_signed ? bits - 1 : bits)) - 1; }

uint64_t clamp_integer(Int128 value, int bits, bool is_signed)
{
    value = std::max(least(bits, is_signed), std::min(most(bits, is_signed), value));
    return static_cast<uint64_t>(value);
}

// The lanes of an integer-to-integer conversion; the common ones have loops of their own below.
void integer_to_integer(Exec& x)
{
    const int from = x.op.imm[cvt_from], to = x.op.imm[cvt_to], flags = x.op.imm[cvt_flags];
    const Arg& d = x.op.args[0];
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const int64_t value = extend(lane_value(x, x.op.args[1], lane), from, flags & from_signed);
        uint64_t out = static_cast<uint64_t>(value);
        if (flags & sat)
            out = clamp_integer(flags & from_signed ? Int128{value} : Int128{static_cast<uint64_t>(value)},
                                to, flags & to_signed);
        // A destination wider than the type is filled by the type's sign.
        set_lane(x, d, lane, static_cast<uint64_t>(extend(out, to, flags & to_signed)));
    }
}

template <class From, class To>
void convert(Exec& x)
{
    Lanes<From> a;
    Lanes<To> d;
    load_lanes(x, x.op.args[1], a);
    for (int lane = 0; lane < warp_lanes; ++lane)
        d[lane] = static_cast<To>(a[lane]);
    store_lanes(x, x.op.args[0], d);
}

double round_integral(double value, Rounding rounding)
{
    switch (rounding) {
    case Rounding::Zero: return std::trunc(value);
    case Rounding::Down: return std::floor(value);
    case Rounding::Up: return std::ceil(value);
    default: return std::nearbyint(value);
    }
}

uint64_t source_bits(Exec& x, const Arg& arg, int lane)
{
    const auto id = static_cast<FormatId>(x.op.imm[cvt_from]);
    const uint64_t bits = lane_value(x, arg, lane);
    return low_bits(bits, id == FormatId::F64 ? 64 : id == FormatId::F32 ? 32 : 16);
}

double source_value(Exec& x, const Arg& arg, int lane)
{
    const auto id = static_cast<FormatId>(x.op.imm[cvt_from]);
    const uint64_t bits = source_bits(x, arg, lane);
    return to_double(id, (x.op.imm[cvt_flags] & ftz) && id == FormatId::F32 ? flush(id, bits) : bits);
}

void float_to_integer(Exec& x)
{
    const int to = x.op.imm[cvt_to], flags = x.op.imm[cvt_flags];
    const bool wide = to == 64 || static_cast<FormatId>(x.op.imm[cvt_from]) == FormatId::F64;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const double value = source_value(x, x.op.args[1], lane);
        uint64_t out;
        if (std::isnan(value)) {
            out = wide ? uint64_t{1} << (to - 1) : 0;
        } else {
            const double whole = round_integral(value, static_cast<Rounding>(x.op.imm[cvt_rounding]));
            const double limit = std::ldexp(1.0, 100);
            out = clamp_integer(static_cast<Int128>(std::max(-limit, std::min(limit, whole))), to,
                                flags & to_signed);
        }
        set_lane(x, x.op.args[0], lane, static_cast<uint64_t>(extend(out, to, flags & to_signed)));
    }
}

uint64_t to_format(FormatId id, double value, Rounding rounding, int flags)
{
    if ((flags & sat) && !(value > 0))
        value = 0;
    else if (flags & sat)
        value = std::min(value, 1.0);
    if ((flags & relu) && value <= 0)
        value = 0;
    uint64_t bits = from_double(id, value, rounding);
    const Format& f = format(id);
    const uint64_t sign = uint64_t{1} << (f.exponent_bits + f.fraction_bits);
    if ((flags & satfinite) && !std::isnan(value) && (bits & (sign - 1)) > largest_finite(id))
        bits = (bits & sign) | largest_finite(id);
    if ((flags & ftz) && id == FormatId::F32)
        bits = flush(id, bits);
    // tf32 is kept where a float's bits would be.
    return id == FormatId::Tf32 ? std::isnan(value) ? nan32 : bits << 13 : bits;
}

// Rounds a 64-bit value to double only where the destination's rounding does it.
double integer_as_double(int64_t value, bool is_signed)
{
    return is_signed ? from_integer_odd(value) : from_unsigned_odd(static_cast<uint64_t>(value));
}

uint64_t integer_to_f64(int64_t value, bool is_signed, Rounding rounding)
{
    const auto exact = is_signed ? Int128{value} : Int128{static_cast<uint64_t>(value)};
    double result =
        is_signed ? static_cast<double>(value) : static_cast<double>(static_cast<uint64_t>(value));
    const auto nearest = static_cast<Int128>(result);
    const bool up = rounding == Rounding::Up || (rounding == Rounding::Zero && exact < 0);
    if (rounding != Rounding::Nearest && nearest != exact && (nearest < exact) == up)
        result = std::nextafter(result, up ? HUGE_VAL : -HUGE_VAL);
    return std::bit_cast<uint64_t>(result);
}

void integer_to_float(Exec& x)
{
    const auto id = static_cast<FormatId>(x.op.imm[cvt_to]);
    const auto rounding = static_cast<Rounding>(x.op.imm[cvt_rounding]);
    const int flags = x.op.imm[cvt_flags];
    const bool is_signed = flags & from_signed;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const int64_t value = extend(lane_value(x, x.op.args[1], lane), x.op.imm[cvt_from], is_signed);
        set_lane(x, x.op.args[0], lane,
                 id == FormatId::F64 ? integer_to_f64(value, is_signed, rounding)
                                     : to_format(id, integer_as_double(value, is_signed), rounding, flags));
    }
}

// What becomes of a NaN, measured on an H200. To and from f64 its sign and payload are handed on; bf16 is
// the upper half of an f32 even so; every other conversion makes the NaN of its format. tf32 keeps no bits
// below its own.
uint64_t nan_to_float(FormatId from, FormatId to, Rounding rounding, int flags, uint64_t bits)
{
    constexpr uint64_t tf32_bits = 0xffffe000;
    if (to == FormatId::Tf32)
        return (rounding == Rounding::Away ? bits : nan32) & tf32_bits;
    if (from == FormatId::Bf16 && to == FormatId::F32)
        return bits << 16;
    if (from == FormatId::F32 && to == FormatId::F64 && (flags & ftz))
        return convert_nan(from, to, nan32);
    return from == FormatId::F64 || to == FormatId::F64 ? convert_nan(from, to, bits) : format(to).nan;
}

// f64 cannot be rounded by way of itself; only integral rounding and saturation change it. The input of a
// conversion to f16 is not flushed, whatever .ftz says, as on an H200.
void float_to_float(Exec& x)
{
    const auto from = static_cast<FormatId>(x.op.imm[cvt_from]);
    const auto id = static_cast<FormatId>(x.op.imm[cvt_to]);
    const auto rounding = static_cast<Rounding>(x.op.imm[cvt_rounding]);
    const int flags = x.op.imm[cvt_flags];
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const uint64_t bits = source_bits(x, x.op.args[1], lane);
        if (is_nan(from, bits) && !(flags & sat)) {
            set_lane(x, x.op.args[0], lane, nan_to_float(from, id, rounding, flags, bits));
            continue;
        }
        double value = id == FormatId::F16 ? to_double(from, bits) : source_value(x, x.op.args[1], lane);
        if (flags & to_integral)
            value = round_integral(value, rounding);
        set_lane(x, x.op.args[0], lane, to_format(id, value, rounding, flags));
    }
}

// The conversions of prologues and epilogues, without flags: of bits, to nearest.
struct NarrowToF16 {
    static uint16_t of(uint32_t bits) { return double_to_f16(std::bit_cast<float>(bits)); }
};

struct NarrowToBf16 {
    static uint16_t of(uint32_t bits)
    {
        const bool nan = (bits & 0x7fffffff) > 0x7f800000;
        return static_cast<uint16_t>(nan ? nan16 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};

struct WidenF16 {
    static uint32_t of(uint16_t bits)
    {
        return std::bit_cast<uint32_t>(canonical(half_to_float(bits, FormatId::F16)));
    }
};

template <class Narrow>
struct NarrowPair {
    static uint32_t of(uint32_t high, uint32_t low)
    {
        return uint32_t{Narrow::of(high)} << 16 | Narrow::of(low);
    }
};

Handler common_floats(const End& to, const End& from, const Op& op)
{
    if (op.imm[cvt_flags] || op.imm[cvt_rounding] != static_cast<int>(Rounding::Nearest))
        return nullptr;
    if (from.id == FormatId::F16 && to.id == FormatId::F32)
        return unary<WidenF16, uint16_t, uint32_t>;
    if (from.id != FormatId::F32)
        return nullptr;
    if (to.id == FormatId::F16)
        return to.pair ? binary<NarrowPair<NarrowToF16>, uint32_t> : unary<NarrowToF16, uint32_t, uint16_t>;
    if (to.id == FormatId::Bf16)
        return to.pair ? binary<NarrowPair<NarrowToBf16>, uint32_t>
                       : unary<NarrowToBf16, uint32_t, uint16_t>;
    return nullptr;
}

// Two floats into one register: the first operand goes up.
void floats_to_pair(Exec& x)
{
    const auto id = static_cast<FormatId>(x.op.imm[cvt_to]);
    const auto rounding = static_cast<Rounding>(x.op.imm[cvt_rounding]);
    const Format& f = format(id);
    const int bits = 1 + f.exponent_bits + f.fraction_bits, flags = x.op.imm[cvt_flags];
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const uint64_t high = to_format(id, source_value(x, x.op.args[1], lane), rounding, flags);
        const uint64_t low = to_format(id, source_value(x, x.op.args[2], lane), rounding, flags);
        set_lane(x, x.op.args[0], lane, high << bits | low);
    }
}

End take_end(Modifiers& m, const ptx::Instruction& instruction, const Program& program)
{
    End end;
    if (m.types_taken() == 0 && m.take("tf32")) {
        end.id = FormatId::Tf32;
        end.floating = true;
        end.type = bits_type(32);
        return end;
    }
    end.type = m.type();
    if (end.type.packed > 2 || (end.type.packed == 2 && (!is_floating(end.type) || end.type.bits != 16)))
        refuse(instruction, program, "no such form");
    end.floating = is_floating(end.type);
    end.pair = end.type.packed == 2;
    if (end.floating)
        end.id = format_of(end.type);
    return end;
}

// cvt takes registers wider than its types.
Arg decode_wide(const ptx::Operand& operand, const Program& program, const ptx::Instruction& instruction,
                const ptx::Type& type)
{
    if (operand.form != ptx::Operand::Form::Register || is_floating(type))
        return decode_arg(operand, program, instruction, type);
    const Arg arg = decode_arg(operand, program);
    if (arg.bits < type.bits || arg.width == 0 || arg.width == 16)
        refuse(instruction, program,
               "register of " + std::to_string(arg.bits) + " bits where at least " +
                   std::to_string(type.bits) + " are needed");
    return arg;
}

Handler common(const End& to, const End& from, const Op& op)
{
    if (to.floating || from.floating || op.imm[cvt_flags] & sat || op.args[0].bits != to.type.bits ||
        (op.args[1].form == Arg::Form::Register && op.args[1].bits != from.type.bits))
        return nullptr;
    const bool is_signed = from.type.kind == ptx::Kind::Signed;
    if (from.type.bits == 32 && to.type.bits == 64)
        return is_signed ? convert<int32_t, int64_t> : convert<uint32_t, uint64_t>;
    if (from.type.bits == 64 && to.type.bits == 32)
        return convert<uint64_t, uint32_t>;
    if (from.type.bits == 16 && to.type.bits == 32)
        return is_signed ? convert<int16_t, int32_t> : convert<uint16_t, uint32_t>;
    if (from.type.bits == 32 && to.type.bits == 16)
        return convert<uint32_t, uint16_t>;
    return nullptr;
}

Handler conversion(const End& to, const End& from, const Op& op)
{
    if (const Handler handler = common(to, from, op))
        return handler;
    if (!to.floating)
        return from.floating ? float_to_integer : integer_to_integer;
    if (!from.floating)
        return integer_to_float;
    if (const Handler handler = common_floats(to, from, op))
        return handler;
    return to.pair ? floats_to_pair : float_to_float;
}

void check_rounding(const ptx::Instruction& instruction, const Program& program, const End& to,
                    const End& from, int floating, int integral)
{
    const auto needs = [&](bool needed, bool given, const char* which) {
        if (needed != given)
            refuse(instruction, program,
                   std::string(which) + (given ? " rounding has no place here" : " rounding is missing"));
    };
    const bool narrows =
        from.floating && to.floating && format(to.id).fraction_bits < format(from.id).fraction_bits;
    const bool range =
        from.id == FormatId::F16 ? to.id == FormatId::Bf16 : to.id == FormatId::F16 && to.id != from.id;
    const bool same = from.floating && to.floating && to.id == from.id;
    needs(from.floating && !to.floating, integral >= 0 && !same, "integer");
    if (!same || floating >= 0)
        needs((to.floating && !from.floating) || narrows || (to.floating && from.floating && range) ||
                  to.pair || from.pair,
              floating >= 0, "floating");
}

void decode_cvt(const ptx::Instruction& instruction, Program& program, Op& op)
{
    if (decode_small_conversion(instruction, program, op))
        return;
    Modifiers m(instruction, program);
    const int integral = m.take_one({"rni", "rzi", "rmi", "rpi"});
    const int floating = m.take_one({"rn", "rz", "rm", "rp", "rna"});
    int flags = integral >= 0 ? to_integral : 0;
    const std::pair<const char*, int> names[] = {
        {"sat", sat}, {"ftz", ftz}, {"relu", relu}, {"satfinite", satfinite}};
    for (const auto& [name, flag] : names)
        if (m.take(name))
            flags |= flag;
    const End to = take_end(m, instruction, program), from = take_end(m, instruction, program);
    m.done();
    check_rounding(instruction, program, to, from, floating, integral);
    if (!to.floating && !from.floating && (flags & ~sat))
        refuse(instruction, program, "no such form");
    flags |= (from.type.kind == ptx::Kind::Signed ? from_signed : 0) |
             (to.type.kind == ptx::Kind::Signed ? to_signed : 0);
    op.imm[cvt_from] = from.floating ? static_cast<int>(from.id) : from.type.bits;
    op.imm[cvt_to] = to.floating ? static_cast<int>(to.id) : to.type.bits;
    op.imm[cvt_rounding] = integral >= 0 ? integral : std::max(0, floating);
    op.imm[cvt_flags] = flags;
    const bool two = to.pair && !from.pair;
    expect_operands(instruction, program, two ? 3 : 2, two ? 3 : 2);
    if (two && (from.id != FormatId::F32 || !from.floating))
        refuse(instruction, program, "no such form");
    if (from.pair)
        refuse(instruction, program, "no such form");
    op.args.push_back(decode_wide(instruction.operands[0], program, instruction, to.type));
    for (size_t i = 1; i < instruction.operands.size(); ++i)
        op.args.push_back(decode_wide(instruction.operands[i], program, instruction, from.type));
    op.run = conversion(to, from, op);
}

}  // namespace

void add_conversion(DecoderTable& table) { table.by_opcode["cvt"] = decode_cvt; }

}  // namespace emu
