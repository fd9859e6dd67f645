// cvt to and from packed fp8, fp6, fp4 and ue8m0, and cvt.pack (ISA 9.7.9.21-22).
#include "numerics/floats.hpp"
#include "ops/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace emu {
namespace {

enum NarrowSlot { narrow_small, narrow_wide, narrow_flags };
enum NarrowFlag { narrow_relu = 1, narrow_up = 2 };

struct Small {
    std::string_view name;
    FormatId format;
    int bits;       // that an element takes
    int count;      // 2 or 4
    bool exponent;  // ue8m0
};
constexpr Small smalls[] = {
    {"e4m3x2", FormatId::E4m3, 8, 2, false}, {"e5m2x2", FormatId::E5m2, 8, 2, false},
    {"e3m2x2", FormatId::E3m2, 8, 2, false}, {"e2m3x2", FormatId::E2m3, 8, 2, false},
    {"e2m1x2", FormatId::E2m1, 4, 2, false}, {"ue8m0x2", FormatId::F32, 8, 2, true},
    {"e4m3x4", FormatId::E4m3, 8, 4, false}, {"e5m2x4", FormatId::E5m2, 8, 4, false},
    {"e3m2x4", FormatId::E3m2, 8, 4, false}, {"e2m3x4", FormatId::E2m3, 8, 4, false},
    {"e2m1x4", FormatId::E2m1, 4, 4, false},
};

// Magnitudes alone: 2^(bits - 127), and no infinity.
uint64_t to_exponent(double value, bool up)
{
    if (std::isnan(value))
        return 0xff;
    value = std::fabs(value);
    if (value >= 0x1p127)
        return 0xfe;
    if (value <= 0x1p-127)
        return 0;
    const int exponent = std::ilogb(value);
    return static_cast<uint64_t>(exponent + 127 + (up && value > std::ldexp(1.0, exponent) ? 1 : 0));
}

uint64_t to_small(const Small& small, double value, int flags)
{
    if (small.exponent)
        return to_exponent(value, flags & narrow_up);
    if ((flags & narrow_relu) && value <= 0)
        value = 0;
    const uint64_t bits = from_double(small.format, value, Rounding::Nearest);
    const Format& f = format(small.format);
    const uint64_t sign = uint64_t{1} << (f.exponent_bits + f.fraction_bits);
    if (!std::isnan(value) && (bits & (sign - 1)) > largest_finite(small.format))
        return (bits & sign) | largest_finite(small.format);
    return bits;
}

// Discarded bits and the random ones are added; a carry rounds away from zero. fp8 and fp6 use 16 random
// bits for two elements each, fp4 8 bits.
uint64_t to_small_randomly(const Small& small, double value, int flags, uint32_t random, int bits)
{
    if (std::isnan(value) || std::isinf(value) || value == 0)
        return to_small(small, value, flags);
    const Format& f = format(small.format);
    const int least = 2 - (1 << (f.exponent_bits - 1)), exponent = std::max(std::ilogb(value), least);
    const double unit = std::ldexp(1.0, exponent - f.fraction_bits), magnitude = std::fabs(value) / unit;
    const double kept = std::floor(magnitude), rest = std::ldexp(magnitude - kept, bits);
    const double rounded = std::floor(rest) + random >= std::ldexp(1.0, bits) ? kept + 1 : kept;
    return to_small(small, std::copysign(rounded * unit, value), flags);
}

double wide_value(FormatId wide, uint64_t word, int index)
{
    return to_double(wide, wide == FormatId::F32 ? word : word >> 16 * index & 0xffff);
}

void pack_floats(Exec& x)
{
    const Small& small = smalls[x.op.imm[narrow_small]];
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        uint64_t out = 0;
        for (int i = 0; i < small.count; ++i) {
            const double value =
                to_double(FormatId::F32, lane_value(x, x.op.args[1 + i], lane) & 0xffffffff);
            uint64_t bits = 0;
            if (small.count == 2) {
                bits = to_small(small, value, x.op.imm[narrow_flags]);
            } else {
                const auto random = static_cast<uint32_t>(lane_value(x, x.op.args[5], lane));
                const bool fp4 = small.bits == 4;
                const uint32_t mine = fp4 ? random >> (i % 2 ? 0 : 16) >> (i < 2 ? 8 : 0) & 0xff
                                          : random >> (i < 2 ? 16 : 0) & 0xffff;
                bits = to_small_randomly(small, value, x.op.imm[narrow_flags], mine, fp4 ? 8 : 16);
            }
            out = out << small.bits | bits;
        }
        set_lane(x, x.op.args[0], lane, out);
    }
}

void narrow_pair(Exec& x)
{
    const Small& small = smalls[x.op.imm[narrow_small]];
    const auto wide = static_cast<FormatId>(x.op.imm[narrow_wide]);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const uint64_t word = lane_value(x, x.op.args[1], lane);
        uint64_t out = 0;
        for (int i = 0; i < 2; ++i)
            out |= to_small(small, wide_value(wide, word, i), x.op.imm[narrow_flags]) << i * small.bits;
        set_lane(x, x.op.args[0], lane, out);
    }
}

void widen_pair(Exec& x)
{
    const Small& small = smalls[x.op.imm[narrow_small]];
    const auto wide = static_cast<FormatId>(x.op.imm[narrow_wide]);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const uint64_t word = lane_value(x, x.op.args[1], lane);
        uint64_t out = 0;
        for (int i = 0; i < 2; ++i) {
            const uint64_t bits = word >> i * small.bits & ((1u << small.bits) - 1);
            double value = small.exponent
                               ? bits == 0xff ? std::nan("") : std::ldexp(1.0, static_cast<int>(bits) - 127)
                               : to_double(small.format, bits);
            if ((x.op.imm[narrow_flags] & narrow_relu) && value <= 0)
                value = 0;
            out |= from_double(wide, value, Rounding::Nearest) << 16 * i;
        }
        set_lane(x, x.op.args[0], lane, out);
    }
}

Arg decode_at_least(const ptx::Instruction& i, const Program& program, const ptx::Operand& operand,
                    int bits)
{
    const Arg arg = decode_arg(operand, program);
    if (arg.form == Arg::Form::Register && (arg.bits < bits || arg.width == 0 || arg.width > 4))
        refuse(i, program,
               "register of " + std::to_string(arg.bits) + " bits where " + std::to_string(bits) +
                   " are needed");
    return arg;
}

void decode_pack(const ptx::Instruction& i, Program& program, Op& op, const Small& small)
{
    const ptx::Type word{ptx::Kind::Bits, 32, 1};
    op.args.push_back(decode_at_least(i, program, i.operands[0], small.bits * small.count));
    if (small.count == 2) {
        expect_operands(i, program, 3, 3);
        op.args.push_back(decode_arg(i.operands[1], program, i, word));
        op.args.push_back(decode_arg(i.operands[2], program, i, word));
    } else {
        expect_operands(i, program, 3, 3);
        if (i.operands[1].form != ptx::Operand::Form::Vector || i.operands[1].parts.size() != 4)
            refuse(i, program, "four values are expected");
        for (const ptx::Operand& part : i.operands[1].parts)
            op.args.push_back(decode_arg(part, program, i, word));
        op.args.push_back(decode_arg(i.operands[2], program, i, word));
    }
    op.run = pack_floats;
}

// ---- cvt.pack ---------------------------------------------------------------------------------------
void pack_integers(Exec& x)
{
    const int bits = x.op.imm[0];
    const bool is_signed = x.op.imm[1];
    const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1,
                  least = is_signed ? -most - 1 : 0;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const auto clamped = [&](size_t arg) {
            const int64_t value = static_cast<int32_t>(lane_value(x, x.op.args[arg], lane));
            return static_cast<uint64_t>(std::clamp(value, least, most)) & mask;
        };
        uint64_t out = clamped(2) | clamped(1) << bits;
        if (x.op.args.size() == 4)
            out |= lane_value(x, x.op.args[3], lane) << 2 * bits;
        set_lane(x, x.op.args[0], lane, out & 0xffffffff);
    }
}

void decode_pack_integers(const ptx::Instruction& i, Program& program, Op& op)
{
    Modifiers m(i, program);
    m.take("pack");
    static constexpr int widths[] = {16, 16, 2, 2, 4, 4, 8, 8};
    const int type = m.take_one({"u16", "s16", "u2", "s2", "u4", "s4", "u8", "s8"});
    if (!m.take("sat") || type < 0 || !m.take("s32") || (type > 1) != m.take("b32"))
        refuse(i, program, "no such form");
    m.done();
    expect_operands(i, program, type > 1 ? 4 : 3, type > 1 ? 4 : 3);
    for (const ptx::Operand& operand : i.operands)
        op.args.push_back(decode_arg(operand, program, i, {ptx::Kind::Bits, 32, 1}));
    op.imm[0] = widths[type];
    op.imm[1] = type % 2;
    op.run = pack_integers;
}

}  // namespace

bool decode_small_conversion(const ptx::Instruction& i, Program& program, Op& op)
{
    if (i.has("pack")) {
        decode_pack_integers(i, program, op);
        return true;
    }
    const auto named = [&](const Small& small) { return i.has(small.name); };
    const auto* small = std::find_if(std::begin(smalls), std::end(smalls), named);
    if (small == std::end(smalls))
        return false;
    Modifiers m(i, program);
    const bool to_small = i.modifiers.back() != small->name;
    m.take(small->name);
    const int rounding = m.take_one({"rn", "rs", "rz", "rp"});
    const bool saturates = m.take("satfinite");
    op.imm[narrow_small] = static_cast<int>(small - smalls);
    op.imm[narrow_flags] = (m.take("relu") ? narrow_relu : 0) | (rounding == 3 ? narrow_up : 0);
    const int wide = m.take_one({"f32", "f16x2", "bf16x2"});
    m.done();
    constexpr FormatId formats[] = {FormatId::F32, FormatId::F16, FormatId::Bf16};
    const int wanted = !to_small ? 0 : small->count == 4 ? 1 : small->exponent ? rounding : 0;
    const bool good_rounding = rounding == wanted && (!to_small || !small->exponent || rounding >= 2);
    const bool good_wide =
        to_small ? wide == 0 || (small->count == 2 && wide > 0 && !(small->exponent && wide == 1))
                 : small->count == 2 && wide == (small->exponent ? 2 : 1);
    if (wide < 0 || !good_wide || !good_rounding || (saturates != to_small && !small->exponent))
        refuse(i, program, "no such form");
    op.imm[narrow_wide] = static_cast<int>(formats[wide]);
    if (to_small && wide == 0) {
        decode_pack(i, program, op, *small);
        return true;
    }
    expect_operands(i, program, 2, 2);
    const int packed = small->bits * small->count;
    op.args = {decode_at_least(i, program, i.operands[0], to_small ? packed : 32),
               decode_at_least(i, program, i.operands[1], to_small ? 32 : packed)};
    op.run = to_small ? narrow_pair : widen_pair;
    return true;
}

}  // namespace emu
