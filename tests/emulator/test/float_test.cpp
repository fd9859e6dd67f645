// Floating arithmetic against the host's own rounding modes, and against exact sums in 113 bits for halves.
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>

namespace emu {
namespace {

float f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

double to_f64(uint64_t bits) { return std::bit_cast<double>(bits); }

// What the hardware makes of a NaN.
uint64_t bits_of(float value) { return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value); }

// The host's operation in a rounding mode; volatile keeps it from being computed at compile time.
template <class T>
T rounded(int mode, const std::function<T()>& operation)
{
    std::fesetround(mode);
    volatile T result = operation();
    std::fesetround(FE_TONEAREST);
    return result;
}

constexpr std::pair<const char*, int> modes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

struct Operands {
    Values a, b, c;
};

Operands operands(int bits)
{
    Operands o;
    cross(interesting_floats(bits, 60, 1), interesting_floats(bits, 60, 2), o.a, o.b);
    o.c = interesting_floats(bits, o.a.size(), 3);
    return o;
}

template <class T>
void check_binary(const std::string& opcode, int bits, const std::function<T(T, T)>& operation)
{
    const Operands o = operands(bits);
    for (const auto& [name, mode] : modes) {
        const std::string text = opcode + "." + name + ".f" + std::to_string(bits) + " d, a, b;";
        const Values d = evaluate(text, {bits, bits, bits}, {o.a, o.b});
        for (size_t i = 0; i < d.size(); ++i) {
            volatile T x = bits == 32 ? static_cast<T>(f32(o.a[i])) : static_cast<T>(to_f64(o.a[i]));
            volatile T y = bits == 32 ? static_cast<T>(f32(o.b[i])) : static_cast<T>(to_f64(o.b[i]));
            const T expected = rounded<T>(mode, [&] { return operation(x, y); });
            if (bits == 32)
                ASSERT_EQ(d[i], bits_of(static_cast<float>(expected)))
                    << text << std::hex << " " << o.a[i] << " " << o.b[i];
            else if (std::isnan(expected))
                ASSERT_TRUE(std::isnan(to_f64(d[i])));
            else
                ASSERT_EQ(d[i], std::bit_cast<uint64_t>(static_cast<double>(expected))) << text;
        }
    }
}

TEST(Float, SingleInEveryRoundingMode)
{
    check_binary<float>("add", 32, [](float a, float b) { return a + b; });
    check_binary<float>("sub", 32, [](float a, float b) { return a - b; });
    check_binary<float>("mul", 32, [](float a, float b) { return a * b; });
    check_binary<float>("div", 32, [](float a, float b) { return a / b; });
}

TEST(Float, DoubleInEveryRoundingMode)
{
    check_binary<double>("add", 64, [](double a, double b) { return a + b; });
    check_binary<double>("mul", 64, [](double a, double b) { return a * b; });
    check_binary<double>("div", 64, [](double a, double b) { return a / b; });
}

TEST(Float, FusedAndRoots)
{
    const Operands o = operands(32);
    for (const auto& [name, mode] : modes) {
        const Values fma =
            evaluate(std::string("fma.") + name + ".f32 d, a, b, c;", {32, 32, 32, 32}, {o.a, o.b, o.c});
        const Values root = evaluate(std::string("sqrt.") + name + ".f32 d, a;", {32, 32}, {o.a});
        const Values inverse = evaluate(std::string("rcp.") + name + ".f32 d, a;", {32, 32}, {o.a});
        for (size_t i = 0; i < fma.size(); ++i) {
            volatile float a = f32(o.a[i]), b = f32(o.b[i]), c = f32(o.c[i]);
            ASSERT_EQ(fma[i], bits_of(rounded<float>(mode, [&] { return __builtin_fmaf(a, b, c); })))
                << name << std::hex << " " << o.a[i] << " " << o.b[i] << " " << o.c[i];
            ASSERT_EQ(root[i], bits_of(rounded<float>(mode, [&] { return __builtin_sqrtf(a); })));
            ASSERT_EQ(inverse[i], bits_of(rounded<float>(mode, [&] { return 1.0f / a; })));
        }
    }
}

TEST(Float, FlushSaturateAndExtrema)
{
    const Operands o = operands(32);
    const auto flushed = [](uint64_t bits) { return bits & 0x7f800000 ? bits : bits & 0x80000000; };
    const Values ftz = evaluate("add.ftz.f32 d, a, b;", {32, 32, 32}, {o.a, o.b});
    const Values sat = evaluate("mul.sat.f32 d, a, b;", {32, 32, 32}, {o.a, o.b});
    const Values least = evaluate("min.f32 d, a, b;", {32, 32, 32}, {o.a, o.b});
    const Values most = evaluate("max.NaN.f32 d, a, b;", {32, 32, 32}, {o.a, o.b});
    const Values magnitude = evaluate("max.xorsign.abs.f32 d, a, b;", {32, 32, 32}, {o.a, o.b});
    for (size_t i = 0; i < ftz.size(); ++i) {
        const float a = f32(o.a[i]), b = f32(o.b[i]);
        ASSERT_EQ(ftz[i], flushed(bits_of(f32(flushed(o.a[i])) + f32(flushed(o.b[i])))));
        const float product = a * b;
        ASSERT_EQ(sat[i], std::isnan(product) || product <= 0 ? 0 : bits_of(std::fmin(product, 1.0f)));
        const bool a_first = a < b || (a == b && std::signbit(a));
        ASSERT_EQ(least[i], bits_of(std::isnan(a) ? b : std::isnan(b) || a_first ? a : b));
        ASSERT_EQ(most[i], std::isnan(a) || std::isnan(b) ? 0x7fffffffu : bits_of(a_first ? b : a));
        if (!std::isnan(a) && !std::isnan(b)) {
            const float size = std::fmax(std::fabs(a), std::fabs(b));
            ASSERT_EQ(magnitude[i], bits_of(std::signbit(a) != std::signbit(b) ? -size : size));
        }
    }
}

// ---- Halves: the nearest of all candidates, by distance in 113 bits. ---------------------------------

using Exact = __float128;

struct HalfFormat {
    const char* name;
    int bits, fraction, bias;
};
constexpr HalfFormat half_formats[] = {{"f16", 16, 10, 15}, {"bf16", -16, 7, 127}};

Exact half_value(const HalfFormat& f, uint64_t bits)
{
    const int exponent = static_cast<int>(bits >> f.fraction & ((1 << (15 - f.fraction)) - 1));
    const auto fraction = static_cast<double>(bits & ((1 << f.fraction) - 1));
    const double ulp = std::ldexp(1.0, (exponent ? exponent : 1) - f.bias - f.fraction);
    const double value = (fraction + (exponent ? 1 << f.fraction : 0)) * ulp;
    return bits >> 15 & 1 ? -value : value;
}

bool half_is_finite(const HalfFormat& f, uint64_t bits)
{
    return (bits & 0x7fff) < (uint64_t{0x7fff} >> f.fraction << f.fraction);
}

// Bisection over the magnitudes; ties go to even. The first infinite pattern stands for where it would lie.
uint64_t nearest_half(const HalfFormat& f, Exact value)
{
    const uint64_t sign = value < 0 ? 0x8000 : 0, infinity = uint64_t{0x7fff} >> f.fraction << f.fraction;
    const Exact size = value < 0 ? -value : value;
    uint64_t below = 0, above = infinity;
    while (above - below > 1) {
        const uint64_t middle = (below + above) / 2;
        (half_value(f, middle) <= size ? below : above) = middle;
    }
    const Exact down = size - half_value(f, below), up = half_value(f, above) - size;
    return sign | (down < up || (down == up && !(below & 1)) ? below : above);
}

// Where 113 bits do not hold a sum, something on the same side of every boundary as it.
Exact sum_of(Exact a, Exact b)
{
    const Exact sum = a + b, larger = a * a > b * b ? a : b, smaller = a * a > b * b ? b : a;
    if (sum - larger == smaller)
        return sum;
    const Exact nudge = (larger < 0 ? -larger : larger) * static_cast<Exact>(0x1p-100);
    return smaller > 0 ? larger + nudge : larger - nudge;
}

uint64_t pair_up(const Values& v, size_t i) { return v[i] | v[(i * 7 + 3) % v.size()] << 16; }

void check_halves(const HalfFormat& f)
{
    const Operands o = operands(f.bits);
    const std::string name = f.name;
    const Values sum = evaluate("add." + name + " d, a, b;", {16, 16, 16}, {o.a, o.b});
    const Values product = evaluate("mul." + name + " d, a, b;", {16, 16, 16}, {o.a, o.b});
    const Values fma = evaluate("fma.rn." + name + " d, a, b, c;", {16, 16, 16, 16}, {o.a, o.b, o.c});
    Values a2, b2;
    for (size_t i = 0; i < o.a.size(); ++i) {
        a2.push_back(pair_up(o.a, i));
        b2.push_back(pair_up(o.b, i));
    }
    const Values pairs = evaluate("sub." + name + "x2 d, a, b;", {32, 32, 32}, {a2, b2});
    for (size_t i = 0; i < o.a.size(); ++i) {
        if (!half_is_finite(f, o.a[i]) || !half_is_finite(f, o.b[i]) || !half_is_finite(f, o.c[i]))
            continue;
        const Exact a = half_value(f, o.a[i]), b = half_value(f, o.b[i]), c = half_value(f, o.c[i]);
        // Zero results have signs that Exact arithmetic here does not track.
        if (a + b != 0) {
            ASSERT_EQ(sum[i], nearest_half(f, sum_of(a, b)))
                << name << std::hex << " " << o.a[i] << " + " << o.b[i];
        }
        if (a * b != 0) {
            ASSERT_EQ(product[i], nearest_half(f, a * b))
                << name << std::hex << " " << o.a[i] << " * " << o.b[i];
        }
        if (a * b + c != 0) {
            ASSERT_EQ(fma[i], nearest_half(f, sum_of(a * b, c)))
                << name << std::hex << " " << o.a[i] << " * " << o.b[i] << " + " << o.c[i];
        }
        const uint64_t high_a = a2[i] >> 16, high_b = b2[i] >> 16;
        if (half_is_finite(f, high_a) && half_is_finite(f, high_b) &&
            half_value(f, high_a) != half_value(f, high_b)) {
            ASSERT_EQ(pairs[i] >> 16,
                      nearest_half(f, sum_of(half_value(f, high_a), -half_value(f, high_b))));
        }
    }
}

TEST(Float, HalvesRoundToNearest)
{
    for (const HalfFormat& f : half_formats)
        check_halves(f);
}

TEST(Float, PairsOfSingles)
{
    const Operands o = operands(32);
    Values a, b;
    for (size_t i = 0; i < o.a.size(); ++i) {
        a.push_back(o.a[i] | o.b[i] << 32);
        b.push_back(o.c[i] | o.a[i] << 32);
    }
    const Values d = evaluate("fma.rn.f32x2 d, a, b, b;", {64, 64, 64}, {a, b});
    for (size_t i = 0; i < d.size(); ++i)
        for (int half = 0; half < 2; ++half) {
            const float x = f32(a[i] >> (32 * half)), y = f32(b[i] >> (32 * half));
            ASSERT_EQ(d[i] >> (32 * half) & 0xffffffff, bits_of(std::fma(x, y, y)));
        }
}

TEST(Float, MixedPrecision)
{
    const Values a = interesting_floats(-16, 500, 4), c = interesting_floats(32, 500, 5);
    const Values d = evaluate("add.f32.bf16 d, a, b;", {32, 16, 32}, {a, c});
    for (size_t i = 0; i < d.size(); ++i)
        ASSERT_EQ(d[i], bits_of(f32(a[i] << 16) + f32(c[i])));
}

TEST(Float, ApproximationsAreClose)
{
    const Values a = interesting_floats(32, 500, 6);
    const std::pair<const char*, double (*)(double)> functions[] = {
        {"ex2.approx.f32", std::exp2}, {"lg2.approx.f32", std::log2},  {"sin.approx.f32", std::sin},
        {"cos.approx.f32", std::cos},  {"tanh.approx.f32", std::tanh}, {"sqrt.approx.f32", std::sqrt}};
    for (const auto& [name, function] : functions) {
        const Values d = evaluate(std::string(name) + " d, a;", {32, 32}, {a});
        for (size_t i = 0; i < d.size(); ++i)
            ASSERT_EQ(d[i], bits_of(static_cast<float>(function(f32(a[i]))))) << name << " " << f32(a[i]);
    }
}

}  // namespace
}  // namespace emu
