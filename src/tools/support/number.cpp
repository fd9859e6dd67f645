#include "src/tools/support/number.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace hg::test {
namespace {

constexpr Format f16{11, -14, 15}, bf16{8, -126, 127}, f32{24, -126, 127};

// Bit layout follows from the format: sign, exponent, digits - 1 bits of fraction.
int fraction_bits(const Format& f) { return f.digits - 1; }
int width(hgemm_type_t type) { return static_cast<int>(bytes_of(type)) * 8; }
uint32_t infinity_bits(const Format& f)
{
    return static_cast<uint32_t>(f.max_exponent * 2 + 1) << fraction_bits(f);
}

// Of numbers that are not 0. Below double's own normal numbers it is off, but far below those of the
// formats.
int exponent_of(double value)
{
    return static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 2047) - 1023;
}

// Of exponents that a normal double has; millions are taken, for which the library's functions are slow.
double power_of_two(int exponent)
{
    return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// Exponent of the last digit that `value`, not 0, has in the format.
int last_digit(const Format& f, double value)
{
    return std::max(exponent_of(value), f.min_exponent) - fraction_bits(f);
}

double overflow_to_infinity(const Format& f, double value)
{
    return std::fabs(value) > f.largest() ? std::copysign(INFINITY, value) : value;
}

}  // namespace

double Format::unit() const { return std::ldexp(1.0, -digits); }
double Format::smallest() const { return std::ldexp(1.0, min_exponent - digits + 1); }
double Format::largest() const { return std::ldexp(2.0 - std::ldexp(1.0, 1 - digits), max_exponent); }

const Format& format_of(hgemm_type_t type)
{
    return type == HGEMM_F16 ? f16 : type == HGEMM_BF16 ? bf16 : f32;
}

const char* name_of(hgemm_type_t type)
{
    return type == HGEMM_F16 ? "f16" : type == HGEMM_BF16 ? "bf16" : "f32";
}

double round_to(hgemm_type_t type, double value)
{
    if (value == 0 || !std::isfinite(value))
        return value;
    const Format& f = format_of(type);
    // Adding and subtracting a number whose last digit is the wanted one makes the FPU round there.
    const double magic = 1.5 * power_of_two(std::clamp(last_digit(f, value) + 52, -1000, 1000));
    return overflow_to_infinity(f, std::copysign((value + magic) - magic, value));
}

double truncate_to(hgemm_type_t type, double value)
{
    if (value == 0 || !std::isfinite(value))
        return value;
    const Format& f = format_of(type);
    const int exponent = last_digit(f, value);
    return overflow_to_infinity(f, std::ldexp(std::trunc(std::ldexp(value, -exponent)), exponent));
}

uint32_t encode(hgemm_type_t type, double value)
{
    const Format& f = format_of(type);
    const uint32_t sign = std::signbit(value) ? uint32_t{1} << (width(type) - 1) : 0;
    if (std::isnan(value))
        return infinity_bits(f) | uint32_t{1} << (fraction_bits(f) - 1);
    const double rounded = std::fabs(round_to(type, value));
    if (std::isinf(rounded))
        return sign | infinity_bits(f);
    if (rounded == 0)
        return sign;
    // A subnormal's exponent field is 0 and it has no hidden digit: both fall out of the addition.
    const int exponent = std::max(exponent_of(rounded), f.min_exponent);
    const auto digits = static_cast<uint32_t>(rounded * power_of_two(fraction_bits(f) - exponent));
    return sign | ((static_cast<uint32_t>(exponent - f.min_exponent) << fraction_bits(f)) + digits);
}

double decode(hgemm_type_t type, uint32_t bits)
{
    if (type == HGEMM_F32)
        return std::bit_cast<float>(bits);
    if (type == HGEMM_BF16)
        return std::bit_cast<float>(bits << 16);
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const auto fraction = static_cast<double>(bits & 1023);
    const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                             : exponent == 0 ? fraction * 0x1p-24
                                             : (1024 + fraction) * power_of_two(exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

uint32_t sentinel(hgemm_type_t type)
{
    return infinity_bits(format_of(type)) | (type == HGEMM_F32   ? 0x6a5a5au
                                             : type == HGEMM_F16 ? 0x25au
                                                                 : 0x5au);
}

double load(hgemm_type_t type, const void* element)
{
    uint32_t bits = 0;
    std::memcpy(&bits, element, bytes_of(type));
    return decode(type, bits);
}

void store(hgemm_type_t type, void* element, double value)
{
    const uint32_t bits = encode(type, value);
    std::memcpy(element, &bits, bytes_of(type));
}

double uniform(uint64_t seed, uint64_t index)
{
    return static_cast<double>(hash(seed, index) >> 11) * 0x1p-53;
}

double normal(uint64_t seed, uint64_t index)
{
    const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, 2 * index)));
    return radius * std::cos(2 * M_PI * uniform(seed, 2 * index + 1));
}

}  // namespace hg::test
