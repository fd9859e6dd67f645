// cvt to and from fp8, fp6, fp4 and ue8m0, by search among all values of the format; cvt.pack.
#include "test/evaluate.hpp"

#include "numerics/floats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace emu {
namespace {

// Values of a format's magnitudes in their order, from exponent and fraction alone.
std::vector<double> magnitudes(int exponent_bits, int fraction_bits, int count)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    std::vector<double> values;
    for (int code = 0; code < count; ++code) {
        const int exponent = code >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
        values.push_back(exponent
                             ? std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits)
                             : std::ldexp(fraction, 1 - bias - fraction_bits));
    }
    return values;
}

struct Format {
    std::string name;
    int exponent_bits, fraction_bits, count;  // of magnitudes that are numbers
    int bits, nan;                            // that an element takes; what NaN becomes
};
const Format formats[] = {{"e4m3", 4, 3, 127, 8, 0x7f},
                          {"e5m2", 5, 2, 124, 8, 0x7f},
                          {"e3m2", 3, 2, 32, 8, 0x1f},
                          {"e2m3", 2, 3, 32, 8, 0x1f},
                          {"e2m1", 2, 1, 8, 4, 0x7}};

// Nearest, ties to the even code; all beyond the largest becomes it.
uint64_t nearest(const Format& f, double value)
{
    if (std::isnan(value))
        return f.nan;
    const std::vector<double> all = magnitudes(f.exponent_bits, f.fraction_bits, f.count);
    const double magnitude = std::fabs(value);
    int best = 0;
    for (int code = 1; code < f.count; ++code) {
        const double now = std::fabs(all[code] - magnitude), before = std::fabs(all[best] - magnitude);
        if (now < before || (now == before && code % 2 == 0))
            best = code;
    }
    if (magnitude > all.back())
        best = f.count - 1;
    return best | uint64_t{std::signbit(value)} << (f.exponent_bits + f.fraction_bits);
}

Values samples(const Format& f)
{
    Values values = {0x7fc00000, 0x7f800000, 0xff800000, 0, 0x80000000};
    for (const double v : magnitudes(f.exponent_bits, f.fraction_bits, f.count))
        for (const double factor : {1.0, -1.0, 1.01, 0.97, 1.0625, 1.125, -1.1875})
            values.push_back(std::bit_cast<uint32_t>(static_cast<float>(v * factor)));
    return values;
}

TEST(SmallFloats, RoundToNearest)
{
    for (const Format& f : formats) {
        const Values a = samples(f), b(a.rbegin(), a.rend());
        const Values d = evaluate("cvt.rn.satfinite." + f.name + "x2.f32 d, a, b;", {16, 32, 32}, {a, b});
        const Values relu =
            evaluate("cvt.rn.satfinite.relu." + f.name + "x2.f32 d, a, b;", {16, 32, 32}, {a, b});
        for (size_t i = 0; i < a.size(); ++i) {
            const float high = std::bit_cast<float>(uint32_t(a[i])),
                        low = std::bit_cast<float>(uint32_t(b[i]));
            ASSERT_EQ(d[i], nearest(f, high) << f.bits | nearest(f, low))
                << f.name << " " << high << " " << low;
            const auto positive = [&](float v) { return nearest(f, v <= 0 ? 0 : v); };
            ASSERT_EQ(relu[i], positive(high) << f.bits | positive(low));
        }
    }
}

TEST(SmallFloats, GoToHalvesAndBack)
{
    for (const Format& f : formats) {
        Values all;
        for (int code = 0; code < f.count; ++code)
            all.push_back(code << f.bits | code | 1 << (f.exponent_bits + f.fraction_bits));
        const Values halves = evaluate("cvt.rn.f16x2." + f.name + "x2 d, a;", {32, 16}, {all});
        const std::vector<double> values = magnitudes(f.exponent_bits, f.fraction_bits, f.count);
        for (size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(to_double(FormatId::F16, halves[i] >> 16), values[i]);
            EXPECT_EQ(to_double(FormatId::F16, halves[i] & 0xffff), -values[i]);
        }
        EXPECT_EQ(evaluate("cvt.rn.satfinite." + f.name + "x2.f16x2 d, a;", {16, 32}, {halves}), all);
    }
}

TEST(SmallFloats, Exponents)
{
    const auto bits = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
    const Values a = {bits(1.0f),     bits(1.5f), bits(0x1p-130f), bits(0x1p127f),
                      bits(INFINITY), bits(NAN),  bits(-3.0f)};
    const Values zero(a.size(), bits(0));
    const Values down = evaluate("cvt.rz.satfinite.ue8m0x2.f32 d, a, b;", {16, 32, 32}, {zero, a});
    const Values up = evaluate("cvt.rp.satfinite.ue8m0x2.f32 d, a, b;", {16, 32, 32}, {zero, a});
    EXPECT_EQ(down, (Values{127, 127, 0, 254, 254, 255, 128}));
    EXPECT_EQ(up, (Values{127, 128, 0, 254, 254, 255, 129}));
    EXPECT_EQ(evaluate("cvt.rn.bf16x2.ue8m0x2 d, a;", {32, 16}, {{0x807f, 0xff01}}),
              (Values{0x40003f80, 0x7fff0080}));
}

// Random bits of nothing truncate, bits of all ones round up whatever is not exact.
TEST(SmallFloats, RoundRandomly)
{
    const auto bits = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
    const std::string text = "cvt.rs.satfinite.e4m3x4.f32 d, {a, a, b, b}, c;";
    const Values a(2, bits(1.0625f)), b(2, bits(-3.0f)), random = {0, 0xffffffff};
    EXPECT_EQ(evaluate(text, {32, 32, 32, 32}, {a, b, random}), (Values{0x3838c4c4, 0x3939c4c4}));
}

TEST(SmallFloats, PackedIntegers)
{
    const auto word = [](int value) { return uint64_t{static_cast<uint32_t>(value)}; };
    const Values a = {word(300), word(-5), word(7)}, b = {word(-300), word(100), word(-8)}, c(3, 0x1234);
    EXPECT_EQ(evaluate("cvt.pack.sat.s8.s32.b32 d, a, b, c;", {32, 32, 32, 32}, {a, b, c}),
              (Values{0x12347f80, 0x1234fb64, 0x123407f8}));
    EXPECT_EQ(evaluate("cvt.pack.sat.u4.s32.b32 d, a, b, c;", {32, 32, 32, 32}, {a, b, c}),
              (Values{0x1234f0, 0x12340f, 0x123470}));
    EXPECT_EQ(evaluate("cvt.pack.sat.u16.s32 d, a, b;", {32, 32, 32}, {a, b}),
              (Values{0x012c0000, 100, 0x70000}));
}

TEST(SmallFloats, OtherFormsAreRefused)
{
    Device device(100);
    for (const char* line :
         {"cvt.rn.e4m3x2.f32 %h0, %f0, %f1;", "cvt.rn.satfinite.ue8m0x2.f32 %h0, %f0, %f1;",
          "cvt.rz.satfinite.e2m1x2.f32 %h0, %f0, %f1;", "cvt.rn.bf16x2.e4m3x2 %r0, %h0;",
          "cvt.rn.satfinite.s2f6x2.f32 %h0, %f0, %f1;", "cvt.pack.s8.s32.b32 %r0, %r1, %r2, %r3;"})
        EXPECT_EQ(device.run(ptx_kernel("sm_100a", 0, line), shape_of(1, 32), {}), "refused") << line;
}

}  // namespace
}  // namespace emu
