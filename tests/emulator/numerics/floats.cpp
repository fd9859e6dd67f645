// Rounding between formats.
#include "numerics/floats.hpp"

#include <bit>
#include <cmath>

namespace emu {
namespace {

constexpr Format formats[] = {
    {5, 10, Specials::InfinityAndNan, 0x7fff},
    {8, 7, Specials::InfinityAndNan, 0x7fff},
    {8, 23, Specials::InfinityAndNan, nan32},
    {8, 10, Specials::InfinityAndNan, 0x3ffff},
    {5, 2, Specials::InfinityAndNan, 0x7f},
    {4, 3, Specials::Nan, 0x7f},
    {3, 2, Specials::None, 0x1f},
    {2, 3, Specials::None, 0x1f},
    {2, 1, Specials::None, 0x7},
    {11, 52, Specials::InfinityAndNan, 0xfff8000000000000},
};

constexpr uint64_t hidden = uint64_t{1} << 52;

uint64_t infinity_bits(const Format& f)
{
    return ((uint64_t{1} << f.exponent_bits) - 1) << f.fraction_bits;
}

bool rounds_up(uint64_t kept, uint64_t rest, uint64_t half, bool negative, Rounding rounding)
{
    switch (rounding) {
    case Rounding::Nearest: return rest > half || (rest == half && (kept & 1));
    case Rounding::Away: return rest >= half;
    case Rounding::Zero: return false;
    case Rounding::Down: return rest && negative;
    default: return rest && !negative;
    }
}

double power_of_two(int exponent)
{
    return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// The neighbour with an odd last bit, when the exact result lies `above` (in magnitude) or below a double.
double make_odd(double value, bool above)
{
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    return bits & 1 ? value : std::bit_cast<double>(above ? bits + 1 : bits - 1);
}

}  // namespace

const Format& format(FormatId id) { return formats[static_cast<int>(id)]; }

FormatId format_of(const ptx::Type& type)
{
    if (type.kind == ptx::Kind::Bfloat)
        return FormatId::Bf16;
    return type.bits == 16 ? FormatId::F16 : type.bits == 32 ? FormatId::F32 : FormatId::F64;
}

bool is_nan(FormatId id, uint64_t bits)
{
    const Format& f = format(id);
    const uint64_t magnitude = bits & ((uint64_t{1} << (f.exponent_bits + f.fraction_bits)) - 1);
    return f.specials == Specials::InfinityAndNan ? magnitude > infinity_bits(f)
                                                  : f.specials == Specials::Nan && magnitude == f.nan;
}

uint64_t largest_finite(FormatId id)
{
    const Format& f = format(id);
    return f.specials == Specials::InfinityAndNan ? infinity_bits(f) - 1
           : f.specials == Specials::Nan          ? f.nan - 1
                                                  : f.nan;
}

uint64_t convert_nan(FormatId from, FormatId to, uint64_t bits)
{
    const Format &f = format(from), &t = format(to);
    const uint64_t sign = bits >> (f.exponent_bits + f.fraction_bits) & 1;
    const uint64_t payload = bits << (64 - f.fraction_bits) >> (64 - t.fraction_bits);
    const uint64_t quiet = uint64_t{1} << (t.fraction_bits - 1);
    return sign << (t.exponent_bits + t.fraction_bits) | infinity_bits(t) | quiet | payload;
}

uint64_t flush(FormatId id, uint64_t bits)
{
    const Format& f = format(id);
    const uint64_t sign = uint64_t{1} << (f.exponent_bits + f.fraction_bits);
    return bits & infinity_bits(f) ? bits : bits & sign;
}

double to_double(FormatId id, uint64_t bits)
{
    if (id == FormatId::F64)
        return std::bit_cast<double>(bits);
    if (id == FormatId::F32)
        return std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (id == FormatId::Bf16)
        return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    const Format& f = format(id);
    const int width = f.exponent_bits + f.fraction_bits;
    const bool negative = bits >> width & 1;
    const int exponent = static_cast<int>(bits >> f.fraction_bits & ((1 << f.exponent_bits) - 1));
    const auto fraction = static_cast<double>(bits & ((uint64_t{1} << f.fraction_bits) - 1));
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    double value;
    if (is_nan(id, bits))
        value = std::nan("");
    else if (f.specials == Specials::InfinityAndNan && exponent == (1 << f.exponent_bits) - 1)
        value = HUGE_VAL;
    else if (exponent == 0)
        value = fraction * power_of_two(1 - bias - f.fraction_bits);
    else
        value = (fraction + static_cast<double>(1 << f.fraction_bits)) *
                power_of_two(exponent - bias - f.fraction_bits);
    return negative ? -value : value;
}

uint64_t from_double(FormatId id, double value, Rounding rounding)
{
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    if (id == FormatId::F64)
        return bits;
    const Format& f = format(id);
    const bool negative = bits >> 63;
    const uint64_t sign = uint64_t{negative} << (f.exponent_bits + f.fraction_bits);
    if (std::isnan(value))
        return f.nan;
    if (id == FormatId::F32 && rounding == Rounding::Nearest)  // as the host does
        return std::bit_cast<uint32_t>(static_cast<float>(value));
    const int raw_exponent = static_cast<int>(bits >> 52 & 0x7ff);
    if (raw_exponent ==
        0)  // zero, or a double too small for any of these formats but not for directed modes
        return bits << 1 &&
                       ((rounding == Rounding::Up && !negative) || (rounding == Rounding::Down && negative))
                   ? sign | 1
                   : sign;
    const int bias = (1 << (f.exponent_bits - 1)) - 1, least = 1 - bias;
    const int exponent = raw_exponent - 1023;
    uint64_t result = 0;
    if (!std::isinf(value)) {
        const uint64_t mantissa = (bits & (hidden - 1)) | hidden;
        const int drop = std::min(62, std::max(exponent, least) - f.fraction_bits - (exponent - 52));
        const uint64_t kept = mantissa >> drop, rest = mantissa & ((uint64_t{1} << drop) - 1);
        result = kept + rounds_up(kept, rest, uint64_t{1} << (drop - 1), negative, rounding);
        // The hidden bit of a normal number adds one to the exponent.
        if (exponent >= least)
            result += static_cast<uint64_t>(exponent + bias - 1) << f.fraction_bits;
    }
    const uint64_t largest = largest_finite(id);
    if (!std::isinf(value) && result <= largest)
        return sign | result;
    const bool towards_zero = rounding == Rounding::Zero || (rounding == Rounding::Down && !negative) ||
                              (rounding == Rounding::Up && negative);
    if (std::isinf(value) || !towards_zero)
        return sign | (f.specials == Specials::InfinityAndNan ? infinity_bits(f) : f.nan);
    return sign | largest;
}

double add_odd(double a, double b)
{
    const double sum = a + b;
    if (!std::isfinite(sum))
        return sum;
    const double b_part = sum - a;
    const double error = (a - (sum - b_part)) + (b - b_part);
    return error == 0 ? sum : make_odd(sum, (error > 0) == (sum > 0));
}

double divide_odd(double a, double b)
{
    const double quotient = a / b;
    if (!std::isfinite(quotient) || quotient == 0 || !std::isfinite(b))
        return quotient;
    const double rest = std::fma(-quotient, b, a);
    return rest == 0 ? quotient : make_odd(quotient, (rest > 0) == (a > 0));
}

double square_root_odd(double a)
{
    const double root = std::sqrt(a);
    if (!std::isfinite(root) || root == 0)
        return root;
    const double rest = std::fma(-root, root, a);
    return rest == 0 ? root : make_odd(root, rest > 0);
}

double from_unsigned_odd(uint64_t value)
{
    const double high = static_cast<double>(value >> 32) * 4294967296.0;
    return add_odd(high, static_cast<double>(value & 0xffffffff));
}

double from_integer_odd(int64_t value)
{
    return value < 0 ? -from_unsigned_odd(0 - static_cast<uint64_t>(value)) : from_unsigned_odd(value);
}

float canonical(float value) { return value != value ? std::bit_cast<float>(nan32) : value; }

float half_to_float(uint16_t bits, FormatId type)
{
    if (type == FormatId::Bf16)
        return std::bit_cast<float>(uint32_t{bits} << 16);
    uint32_t sign = uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 31)
        return std::bit_cast<float>(sign | infinity32 | fraction << 13);
    if (exponent == 0)
        return std::copysign(static_cast<float>(fraction) * 0x1p-24f, sign ? -1.0f : 1.0f);
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t double_to_f16(double value)
{
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    double magnitude = std::fabs(value);
    if (std::isnan(value))
        return nan16;
    if (magnitude >= 65520)
        return sign | infinity16;
    if (magnitude < 0x1p-14)  // subnormal: whole multiples of 2^-24, and the carry makes it normal
        return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24));
    uint64_t bits = std::bit_cast<uint64_t>(magnitude);
    bits += (uint64_t{1} << 41) - 1 + (bits >> 42 & 1);
    return sign | static_cast<uint16_t>((bits >> 42) - (1008 << 10));
}

float number_to_float(uint32_t bits, FormatId type)
{
    switch (type) {
    case FormatId::Tf32: return std::bit_cast<float>(bits << 13);
    case FormatId::F16:
    case FormatId::Bf16: return half_to_float(static_cast<uint16_t>(bits), type);
    default: return static_cast<float>(to_double(type, bits));
    }
}

// Infinite when it overflows; what truncates to zero has no sign.
uint32_t truncate_to_float(double sum, int fraction)
{
    uint64_t bits = std::bit_cast<uint64_t>(sum);
    double magnitude = std::fabs(sum);
    if (magnitude < std::ldexp(1.0, -126 - fraction))
        return 0;
    if (magnitude >= 0x1p128)
        return infinity32 | (bits >> 63 << 31);
    double kept = std::bit_cast<double>(bits & ~((uint64_t{1} << (52 - fraction)) - 1));
    if (magnitude < 0x1p-126)
        kept = std::copysign(std::ldexp(std::trunc(std::ldexp(magnitude, 126 + fraction)), -126 - fraction),
                             sum);
    return std::bit_cast<uint32_t>(static_cast<float>(kept));
}

}  // namespace emu
