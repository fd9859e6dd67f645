// Floating formats and correctly rounded arithmetic in them, by way of double: a result in double that is
// rounded to odd still rounds correctly, in every mode, to any format with less than 51 fraction bits.
#pragma once

#include "ptx/module.hpp"

#include <cstdint>

namespace emu {

enum class Rounding : int { Nearest, Zero, Down, Up, Away };  // Away: nearest, ties away from zero

enum class FormatId : int { F16, Bf16, F32, Tf32, E5m2, E4m3, E3m2, E2m3, E2m1, F64 };

// What the largest exponent holds: infinity and NaN; numbers and one NaN (e4m3); numbers alone.
enum class Specials : uint8_t { InfinityAndNan, Nan, None };

struct Format {
    int exponent_bits, fraction_bits;
    Specials specials;
    uint64_t nan;  // the one that arithmetic makes; the largest number where there is none

    int bits() const { return 1 + exponent_bits + fraction_bits; }
};

const Format& format(FormatId id);
FormatId format_of(const ptx::Type& type);

double to_double(FormatId id, uint64_t bits);
uint64_t from_double(FormatId id, double value, Rounding rounding);
uint64_t largest_finite(FormatId id);
bool is_nan(FormatId id, uint64_t bits);
// A NaN in another format with its sign and the upper bits of its payload, quiet.
uint64_t convert_nan(FormatId from, FormatId to, uint64_t bits);
constexpr uint32_t infinity32 = 0x7f800000, infinity16 = 0x7c00;  // of f32 and f16
constexpr uint64_t quiet_bit = uint64_t{1} << 51;                 // of a double
// Subnormals become zero of the same sign.
uint64_t flush(FormatId id, uint64_t bits);

// Conversions that are exact or round to nearest even.
float half_to_float(uint16_t bits, FormatId type);  // of f16 and bf16
uint16_t double_to_f16(double value);
float number_to_float(uint32_t bits, FormatId type);  // of at most 19 bits
// An exact sum to fp32: truncated to `fraction` bits, but infinite when it overflows.
uint32_t truncate_to_float(double sum, int fraction = 23);

// Rounded to odd in double.
double add_odd(double a, double b);
double divide_odd(double a, double b);
double square_root_odd(double a);
double from_integer_odd(int64_t value);
double from_unsigned_odd(uint64_t value);

// ISA 9.7.3: the NaN that float instructions make.
constexpr uint32_t nan32 = 0x7fffffff;
constexpr uint16_t nan16 = 0x7fff;  // of f16 and bf16
float canonical(float value);

}  // namespace emu
