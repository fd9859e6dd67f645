// Sixteen columns at a time: largest exponent of the step, then the aligned and truncated sum, then one
// rounding per element. Infinities and NaN are rare and settled element by element.
#pragma GCC optimize("O3")
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors pass between inlined functions alone
#include "numerics/tensor_core.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#define EMU_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), noinline))
#else
#define EMU_CLONES __attribute__((noinline))
#endif

namespace emu {

namespace {

constexpr int lanes = 16;
using Ints = int32_t __attribute__((vector_size(lanes * 4)));
using Floats = float __attribute__((vector_size(lanes * 4)));
using Longs = int64_t __attribute__((vector_size(lanes * 8)));
using Doubles = double __attribute__((vector_size(lanes * 8)));

constexpr int zero_exponent = -800;  // below all that matters, so that a zero never sets the alignment
constexpr uint32_t infinity32 = 0x7f800000;
constexpr uint32_t nan16 = 0x7fff, infinity16 = 0x7c00;

// Values as the aligner sees them: significand * 2^(exponent - fraction of their format), 0 for an infinity
// or NaN. The result is not 0 if there is one of those.
EMU_CLONES uint32_t split(const uint32_t* codes, int count, const Format& format, int32_t* significands,
                          int32_t* exponents)
{
    const uint32_t largest = (1u << format.exponent_bits) - 1, bias = largest >> 1;
    const uint32_t hidden = 1u << format.fraction_bits;
    const int sign = format.exponent_bits + format.fraction_bits;
    // The bits that make a value special; none has those of a format without such values.
    const uint32_t special_bits = format.specials == Specials::InfinityAndNan
                                      ? largest << format.fraction_bits
                                  : format.specials == Specials::Nan ? static_cast<uint32_t>(format.nan)
                                                                     : ~0u;
    uint32_t any_special = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t bits = codes[i], exponent = bits >> format.fraction_bits & largest;
        const uint32_t fraction = bits & (hidden - 1), special = (bits & special_bits) == special_bits;
        const uint32_t magnitude = special ? 0 : exponent ? fraction | hidden : fraction;
        const uint32_t negative = 0 - (bits >> sign & 1);
        significands[i] = static_cast<int32_t>((magnitude ^ negative) - negative);
        exponents[i] = magnitude ? static_cast<int32_t>((exponent ? exponent : 1) - bias) : zero_exponent;
        any_special |= special;
    }
    return any_special;
}

int scale_of(const uint8_t* scales, int row) { return scales ? scales[row] - 127 : 0; }
bool is_nan_scale(const uint8_t* scales, int row) { return scales && scales[row] == 0xff; }

// The operands of one tile, taken apart: a by rows, b by columns of blocks of `lanes`.
struct Tile {
    const TensorCore& core;
    const MatrixShape& shape;
    const uint32_t *a, *b;
    int blocks;
    std::vector<int32_t> a_significand, a_exponent;  // [m][k]
    std::vector<int32_t> b_significand, b_exponent;  // [block][k][lane]
    std::vector<int32_t> a_special, b_special;       // [m], [block][lane]: -1 or 0

    Tile(const TensorCore& core, const MatrixShape& shape, const uint32_t* a, const uint32_t* b);
};

Tile::Tile(const TensorCore& core, const MatrixShape& shape, const uint32_t* a, const uint32_t* b)
    : core(core), shape(shape), a(a), b(b), blocks((shape.n + lanes - 1) / lanes)
{
    // Shifted so that products come with `fraction` bits behind the point.
    const Format &left = format(shape.a), &right = format(shape.b);
    const int shift = core.fraction - left.fraction_bits - right.fraction_bits;
    a_significand.resize(shape.m * shape.k);
    a_exponent.resize(shape.m * shape.k);
    a_special.resize(shape.m);
    for (int row = 0; row < shape.m; row++) {
        int32_t *significand = a_significand.data() + row * shape.k,
                *exponent = a_exponent.data() + row * shape.k;
        const bool special = split(a + row * shape.k, shape.k, left, significand, exponent);
        a_special[row] = -int32_t{special || is_nan_scale(shape.a_scale, row)};
        for (int k = 0; k < shape.k; k++) {
            significand[k] *= 1 << shift;
            exponent[k] += scale_of(shape.a_scale, row);
        }
    }
    b_significand.resize(blocks * shape.k * lanes);
    b_exponent.resize(blocks * shape.k * lanes);
    b_special.resize(blocks * lanes);
    std::vector<int32_t> significand(shape.k), exponent(shape.k);
    for (int column = 0; column < shape.n; column++) {
        const bool special =
            split(b + column * shape.k, shape.k, right, significand.data(), exponent.data());
        b_special[column] = -int32_t{special || is_nan_scale(shape.b_scale, column)};
        const int first = column / lanes * shape.k * lanes + column % lanes;
        for (int k = 0; k < shape.k; k++) {
            b_significand[first + k * lanes] = significand[k];
            b_exponent[first + k * lanes] = exponent[k] + scale_of(shape.b_scale, column);
        }
    }
}

// One row of one block, products first_k to last_k.
struct Step {
    int row, block, first_k, last_k;
};

// Results with an infinity or NaN among what goes in.
uint32_t special_result(const Tile& tile, const Step& step, int column, uint32_t c)
{
    const MatrixShape& shape = tile.shape;
    float sum = shape.half_result ? half_to_float(static_cast<uint16_t>(c), FormatId::F16)
                                  : std::bit_cast<float>(c);
    if (std::isfinite(sum))
        sum = 0;
    if (is_nan_scale(shape.a_scale, step.row) || is_nan_scale(shape.b_scale, column))
        sum = std::numeric_limits<float>::quiet_NaN();
    for (int k = step.first_k; k < step.last_k; k++) {
        float left = number_to_float(tile.a[step.row * shape.k + k], shape.a);
        float right = number_to_float(tile.b[column * shape.k + k], shape.b);
        if (!std::isfinite(left) || !std::isfinite(right))
            sum += left * right;
    }
    if (std::isnan(sum))
        return shape.half_result ? nan16 : nan32;
    uint32_t sign = std::signbit(sum);
    return shape.half_result ? infinity16 | sign << 15 : infinity32 | sign << 31;
}

// Rounds one by one: f16 results, subnormal and infinite ones, and whatever comes from an infinity or NaN.
void round_row(const Tile& tile, const Step& step, const Doubles& value, const Ints& special, const Ints& c,
               Ints& result)
{
    int count = std::min(lanes, tile.shape.n - step.block * lanes);
    for (int i = 0; i < count; i++) {
        if (special[i])
            result[i] = special_result(tile, step, step.block * lanes + i, c[i]);
        else if (!tile.shape.half_result)
            result[i] = truncate_to_float(value[i], tile.core.result_fraction);
        else
            result[i] = double_to_f16(value[i]);
        if (tile.shape.half_result && result[i] == 0x8000)
            result[i] = 0;
    }
}

// The accumulator's parts; `special` is -1 where it is infinite or NaN.
struct Accumulator {
    Ints significand, exponent, special;
};

[[gnu::always_inline]] inline Accumulator split_block(const Ints& bits, int exponent_bits,
                                                      int fraction_bits, int shift)
{
    int largest = (1 << exponent_bits) - 1, bias = largest >> 1;
    Ints field = bits >> fraction_bits & largest, fraction = bits & ((1 << fraction_bits) - 1);
    Ints normal = field != 0, zero = (field | fraction) == 0;
    Ints sign = bits << (31 - exponent_bits - fraction_bits) >> 31;
    Ints magnitude = fraction | (normal & 1 << fraction_bits);
    magnitude = shift < 0 ? magnitude >> -shift : magnitude << shift;
    Ints exponent = (normal ? field : field + 1) - bias;
    return {(magnitude ^ sign) - sign, zero ? Ints{} + zero_exponent : exponent, field == largest};
}

[[gnu::always_inline]] inline Ints load(const int32_t* from)
{
    Ints values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

[[gnu::always_inline]] inline Ints align(const Ints& value, const Ints& distance)
{
    Ints shift = distance < 31 ? distance : 31;
    Ints sign = value >> 31;
    return ((((value ^ sign) - sign) >> shift) ^ sign) - sign;
}

[[gnu::always_inline]] inline Doubles aligned_sum(const Tile& tile, const Step& step, const Accumulator& c)
{
    int depth = tile.shape.k;
    const int32_t *significand = tile.a_significand.data() + step.row * depth,
                  *exponent = tile.a_exponent.data() + step.row * depth;
    const int32_t *b_significand = tile.b_significand.data() + step.block * depth * lanes,
                  *b_exponent = tile.b_exponent.data() + step.block * depth * lanes;
    Ints largest = c.exponent;
    for (int k = step.first_k; k < step.last_k; k++) {
        Ints e = exponent[k] + load(b_exponent + k * lanes);
        largest = e > largest ? e : largest;
    }
    // Eight products at a time, because more may pass 31 bits.
    Doubles sum = __builtin_convertvector(align(c.significand, largest - c.exponent), Doubles);
    for (int first = step.first_k; first < step.last_k; first += 8) {
        Ints part{};
        const int last = std::min(first + 8, step.last_k);
        for (int k = first; k < last; k++)
            part += align(significand[k] * load(b_significand + k * lanes),
                          largest - (exponent[k] + load(b_exponent + k * lanes)));
        sum += __builtin_convertvector(part, Doubles);
    }
    Longs power =
        __builtin_convertvector(largest < zero_exponent ? Ints{} + zero_exponent : largest, Longs);
    return sum * reinterpret_cast<Doubles>((power + (1023 - tile.core.fraction)) << 52);
}

// Truncated; `rare` is -1 where the value is neither zero nor a normal float.
[[gnu::always_inline]] inline Floats truncate_block(const Doubles& value, int fraction, Ints& rare)
{
    Longs bits = reinterpret_cast<Longs>(value), field = bits >> 52 & 0x7ff;
    Longs outside = (value != 0.0) & ((field < 1023 - 126) | (field > 1023 + 127));
    rare = __builtin_convertvector(outside, Ints);
    return __builtin_convertvector(reinterpret_cast<Doubles>(bits & ~((1ll << (52 - fraction)) - 1)),
                                   Floats) +
           0.0f;
}

EMU_CLONES void run_block(const Tile& tile, Step step, uint32_t* d)
{
    const MatrixShape& shape = tile.shape;
    int first = step.block * lanes, count = std::min(lanes, shape.n - first), fraction = tile.core.fraction;
    for (step.row = 0; step.row < shape.m; step.row++) {
        uint32_t* row = d + step.row * shape.n + first;
        Ints bits{};
        std::memcpy(&bits, row, count * 4);
        Accumulator c = shape.half_result ? split_block(bits & 0xffff, 5, 10, fraction - 10)
                                          : split_block(bits, 8, 23, fraction - 23);
        Doubles value = aligned_sum(tile, step, c);
        Ints rare;
        Ints result = reinterpret_cast<Ints>(truncate_block(value, tile.core.result_fraction, rare));
        Ints special = c.special | load(tile.b_special.data() + first) | tile.a_special[step.row];
        rare |= special;
        int64_t any[lanes / 2], seen = 0;
        std::memcpy(any, &rare, sizeof any);
        for (int64_t word : any)
            seen |= word;
        if (seen != 0 || shape.half_result)
            round_row(tile, step, value, special, bits, result);
        std::memcpy(row, &result, count * 4);
    }
}

// Plain fp32 products and sums; an f16 result is rounded at the end.
EMU_CLONES void fast_row(const float* a, const float* b, int depth, float* sum)
{
    Floats total, right;
    std::memcpy(&total, sum, sizeof total);
    for (int k = 0; k < depth; k++) {
        std::memcpy(&right, b + k * lanes, sizeof right);
        total += a[k] * right;
    }
    std::memcpy(sum, &total, sizeof total);
}

float scaled(uint32_t bits, FormatId type, const uint8_t* scales, int row)
{
    if (is_nan_scale(scales, row))
        return std::numeric_limits<float>::quiet_NaN();
    const float value = number_to_float(bits, type);
    return scales ? std::ldexp(value, scale_of(scales, row)) : value;
}

void multiply_fast(const MatrixShape& shape, const uint32_t* a, const uint32_t* b, uint32_t* d)
{
    std::vector<float> left(shape.m * shape.k);
    for (size_t i = 0; i < left.size(); i++)
        left[i] = scaled(a[i], shape.a, shape.a_scale, static_cast<int>(i) / shape.k);
    std::vector<float> right(shape.k * lanes);
    for (int first = 0; first < shape.n; first += lanes) {
        int count = std::min(lanes, shape.n - first);
        for (int k = 0; k < shape.k; k++)
            for (int i = 0; i < lanes; i++)
                right[k * lanes + i] =
                    i < count ? scaled(b[(first + i) * shape.k + k], shape.b, shape.b_scale, first + i) : 0;
        for (int row = 0; row < shape.m; row++) {
            uint32_t* out = d + row * shape.n + first;
            float sum[lanes] = {};
            for (int i = 0; i < count; i++)
                sum[i] = shape.half_result ? half_to_float(static_cast<uint16_t>(out[i]), FormatId::F16)
                                           : std::bit_cast<float>(out[i]);
            fast_row(left.data() + row * shape.k, right.data(), shape.k, sum);
            for (int i = 0; i < count; i++)
                out[i] = shape.half_result ? double_to_f16(sum[i]) : std::bit_cast<uint32_t>(sum[i]);
        }
    }
}

}  // namespace

TensorCore tensor_core(const Config& config, MatrixUnit unit, FormatId operand)
{
    TensorCore core;
    core.exact = config.arithmetic == Arithmetic::Exact;
    if (config.cc < 90) {
        core.fraction = 24;
        core.step = 16;
    }
    const bool eight_bits = operand == FormatId::E4m3 || operand == FormatId::E5m2;
    if (eight_bits && (unit == MatrixUnit::Wgmma || config.cc == 89)) {
        core.fraction = 13;
        core.result_fraction = 13;
    }
    return core;
}

void multiply_accumulate(const TensorCore& core, const MatrixShape& shape, const uint32_t* a,
                         const uint32_t* b, uint32_t* d)
{
    if (!core.exact) {
        multiply_fast(shape, a, b, d);
        return;
    }
    Tile tile(core, shape, a, b);
    const int bytes = shape.a == FormatId::Tf32 ? 4 : format(shape.a).bits() == 16 ? 2 : 1;
    const int step = core.step / bytes;
    for (int first_k = 0; first_k < shape.k; first_k += step) {
        int last_k = std::min(first_k + step, shape.k);
        for (int block = 0; block < tile.blocks; block++)
            run_block(tile, {0, block, first_k, last_k}, d);
    }
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

}  // namespace emu
