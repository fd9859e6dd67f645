// Sixteen columns at a time: largest exponent of the step, then the aligned and truncated sum, then one
// rounding per element. Infinities and NaN are rare and settled element by element.
#pragma GCC optimize("O3")
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors pass between inlined functions alone
#include "numerics/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
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

// The bits that make a value of the format an infinity or NaN; no value has those of a format without any.
uint32_t special_bits(const Format& format)
{
    switch (format.specials) {
    case Specials::InfinityAndNan: return ((1u << format.exponent_bits) - 1) << format.fraction_bits;
    case Specials::Nan: return static_cast<uint32_t>(format.nan);
    default: return ~0u;
    }
}

bool has_special(const uint32_t* codes, int count, const Format& format)
{
    const uint32_t bits = special_bits(format);
    return std::any_of(codes, codes + count, [bits](uint32_t code) { return (code & bits) == bits; });
}

// Values as the aligner sees them: significand * 2^(exponent - fraction of their format), 0 for an infinity
// or NaN. Is there one of those?
EMU_CLONES bool split(const uint32_t* codes, int count, const Format& format,
                      int32_t* __restrict significands, int32_t* __restrict exponents)
{
    const int fraction_bits = format.fraction_bits, sign = format.exponent_bits + fraction_bits;
    const uint32_t largest = (1u << format.exponent_bits) - 1, bias = largest >> 1;
    const uint32_t hidden = 1u << fraction_bits, specials = special_bits(format);
    uint32_t any_special = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t bits = codes[i], exponent = bits >> fraction_bits & largest;
        const uint32_t fraction = bits & (hidden - 1), special = (bits & specials) == specials;
        const uint32_t magnitude = special ? 0 : exponent ? fraction | hidden : fraction;
        const uint32_t negative = 0 - (bits >> sign & 1);
        significands[i] = static_cast<int32_t>((magnitude ^ negative) - negative);
        exponents[i] = magnitude ? static_cast<int32_t>((exponent ? exponent : 1) - bias) : zero_exponent;
        any_special |= special;
    }
    return any_special != 0;
}

int scale_of(const uint8_t* scales, int row) { return scales ? scales[row] - 127 : 0; }
bool is_nan_scale(const uint8_t* scales, int row) { return scales && scales[row] == 0xff; }

// The operands of one tile, taken apart: a by rows, b by columns of blocks of `lanes`. Of eight columns,
// which mma has, a block holds two rows, one behind the other as in memory.
struct Tile {
    const TensorCore& core;
    const MatrixShape& shape;
    const uint32_t *a, *b;
    int rows, blocks;                     // rows of a block
    std::vector<int32_t> storage;         // of what follows
    int32_t *a_significand, *a_exponent;  // [m][k]
    int32_t *b_significand, *b_exponent;  // [block][k][lane]
    int32_t *a_special, *b_special;       // [m], [block][lane]: -1 or 0

    Tile(const TensorCore& core, const MatrixShape& shape, const uint32_t* a, const uint32_t* b);
    void split_a(const Format& format, int shift);
    void split_b(const Format& format, int32_t* significands, int32_t* exponents);
};

Tile::Tile(const TensorCore& core, const MatrixShape& shape, const uint32_t* a, const uint32_t* b)
    : core(core), shape(shape), a(a), b(b), rows(shape.n == lanes / 2 && shape.m % 2 == 0 ? 2 : 1),
      blocks((shape.n + lanes - 1) / lanes)
{
    const int a_size = shape.m * shape.k, b_size = blocks * shape.k * lanes;
    storage.resize(2 * a_size + 4 * b_size + shape.m + blocks * lanes);
    int32_t* next = storage.data();
    const auto take = [&next](int count) { return std::exchange(next, next + count); };
    a_significand = take(a_size), a_exponent = take(a_size), a_special = take(shape.m);
    b_significand = take(b_size), b_exponent = take(b_size), b_special = take(blocks * lanes);
    // Shifted so that products come with `fraction` bits behind the point.
    const Format &left = format(shape.a), &right = format(shape.b);
    split_a(left, core.fraction - left.fraction_bits - right.fraction_bits);
    int32_t* significands = take(b_size);
    split_b(right, significands, take(b_size));
}

void Tile::split_a(const Format& format, int shift)
{
    const int k = shape.k;
    const bool special = split(a, shape.m * k, format, a_significand, a_exponent);
    for (int i = 0; i < shape.m * k; i++)
        a_significand[i] *= 1 << shift;
    for (int row = 0; row < shape.m; row++) {
        int32_t* exponents = a_exponent + row * k;
        const bool special_row = special && has_special(a + row * k, k, format);
        a_special[row] = -int32_t{special_row || is_nan_scale(shape.a_scale, row)};
        for (int i = 0; i < k && shape.a_scale; i++)
            exponents[i] += scale_of(shape.a_scale, row);
    }
}

void Tile::split_b(const Format& format, int32_t* significands, int32_t* exponents)
{
    const int k = shape.k;
    const bool special = split(b, shape.n * k, format, significands, exponents);
    for (int lane = 0; lane < shape.n * rows; lane++) {
        const int column = lane % shape.n;
        const bool special_column = special && has_special(b + column * k, k, format);
        b_special[lane] = -int32_t{special_column || is_nan_scale(shape.b_scale, column)};
        const int first = lane / lanes * k * lanes + lane % lanes, scale = scale_of(shape.b_scale, column);
        for (int i = 0; i < k; i++) {
            b_significand[first + i * lanes] = significands[column * k + i];
            b_exponent[first + i * lanes] = exponents[column * k + i] + scale;
        }
    }
}

// The rows of one block from `row` on, products first_k to last_k.
struct Step {
    int row, block, first_k, last_k;
};

// Results with an infinity or NaN among what goes in.
uint32_t special_result(const Tile& tile, const Step& step, int lane, uint32_t c)
{
    const MatrixShape& shape = tile.shape;
    const bool second = tile.rows == 2 && lane >= shape.n;
    const int row = step.row + second, column = step.block * lanes + lane - second * shape.n;
    float sum = shape.half_result ? half_to_float(static_cast<uint16_t>(c), FormatId::F16)
                                  : std::bit_cast<float>(c);
    if (std::isfinite(sum))
        sum = 0;
    if (is_nan_scale(shape.a_scale, row) || is_nan_scale(shape.b_scale, column))
        sum = std::numeric_limits<float>::quiet_NaN();
    for (int k = step.first_k; k < step.last_k; k++) {
        float left = number_to_float(tile.a[row * shape.k + k], shape.a);
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
void round_rows(const Tile& tile, const Step& step, const Doubles& value, const Ints& special,
                const Ints& c, Ints& result)
{
    int count = std::min(lanes, tile.shape.n * tile.rows - step.block * lanes);
    for (int i = 0; i < count; i++) {
        if (special[i])
            result[i] = special_result(tile, step, i, c[i]);
        else if (!tile.shape.half_result)
            result[i] = truncate_to_float(value[i], tile.core.result_fraction);
        else
            result[i] = double_to_f16(value[i]);
        if (tile.shape.half_result && result[i] == 0x8000)
            result[i] = 0;
    }
}

// The accumulator's parts; `special` is -1 where it is infinite or NaN.
struct SplitBlock {
    Ints significand, exponent, special;
};

[[gnu::always_inline]] inline SplitBlock split_block(const Ints& bits, int exponent_bits, int fraction_bits,
                                                     int shift)
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

// A value of each row of a block; those of two rows are `distance` apart.
template <int Rows>
[[gnu::always_inline]] inline Ints of_rows(const int32_t* values, int distance)
{
    constexpr Ints second{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    const Ints row = Ints{} + values[0];
    return Rows == 1 ? row : second ? Ints{} + values[distance] : row;
}

template <int Rows>
[[gnu::always_inline]] inline Doubles aligned_sum(const Tile& tile, const Step& step, const SplitBlock& c)
{
    int depth = tile.shape.k;
    const int32_t *significand = tile.a_significand + step.row * depth,
                  *exponent = tile.a_exponent + step.row * depth;
    const int32_t *b_significand = tile.b_significand + step.block * depth * lanes,
                  *b_exponent = tile.b_exponent + step.block * depth * lanes;
    Ints largest = c.exponent;
    for (int k = step.first_k; k < step.last_k; k++) {
        Ints e = of_rows<Rows>(exponent + k, depth) + load(b_exponent + k * lanes);
        largest = e > largest ? e : largest;
    }
    // Eight products at a time, because more may pass 31 bits.
    Doubles sum = __builtin_convertvector(align(c.significand, largest - c.exponent), Doubles);
    for (int first = step.first_k; first < step.last_k; first += 8) {
        Ints part{};
        const int last = std::min(first + 8, step.last_k);
        for (int k = first; k < last; k++)
            part += align(of_rows<Rows>(significand + k, depth) * load(b_significand + k * lanes),
                          largest - (of_rows<Rows>(exponent + k, depth) + load(b_exponent + k * lanes)));
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

template <int Rows>
[[gnu::always_inline]] inline void run_rows(const Tile& tile, Step step, uint32_t* d)
{
    const MatrixShape& shape = tile.shape;
    int first = step.block * lanes, count = std::min(lanes, shape.n * Rows - first),
        fraction = tile.core.fraction;
    for (step.row = 0; step.row < shape.m; step.row += Rows) {
        uint32_t* row = d + step.row * shape.n + first;
        Ints bits{};
        std::memcpy(&bits, row, count * 4);
        SplitBlock c = shape.half_result ? split_block(bits & 0xffff, 5, 10, fraction - 10)
                                         : split_block(bits, 8, 23, fraction - 23);
        Doubles value = aligned_sum<Rows>(tile, step, c);
        Ints rare;
        Ints result = reinterpret_cast<Ints>(truncate_block(value, tile.core.result_fraction, rare));
        Ints special =
            c.special | load(tile.b_special + first) | of_rows<Rows>(tile.a_special + step.row, 1);
        rare |= special;
        int64_t any[lanes / 2], seen = 0;
        std::memcpy(any, &rare, sizeof any);
        for (int64_t word : any)
            seen |= word;
        if (seen != 0 || shape.half_result)
            round_rows(tile, step, value, special, bits, result);
        std::memcpy(row, &result, count * 4);
    }
}

EMU_CLONES void run_block(const Tile& tile, const Step& step, uint32_t* d)
{
    if (tile.rows == 2)
        run_rows<2>(tile, step, d);
    else
        run_rows<1>(tile, step, d);
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

}  // namespace emu
