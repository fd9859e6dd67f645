// cvt, comparisons and selection.
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace emu {
namespace {

float to_f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

// By the definition of binary16: _Float16 is none of GCC 11's types in C++.
float from_half(uint64_t bits)
{
    const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
    const float infinite = mantissa ? std::numeric_limits<float>::quiet_NaN() : INFINITY;
    const int significand = exponent ? 1024 + mantissa : mantissa;
    const float value =
        exponent == 31 ? infinite : std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - 25);
    return bits >> 15 & 1 ? -value : value;
}

uint64_t to_half(float value)
{
    if (std::isnan(value))
        return 0x7fff;
    const uint64_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::fabs(value) >= 65520)
        return sign | 0x7c00;
    const int exponent = std::max(std::ilogb(value), -14);
    const double significand =
        std::nearbyint(std::ldexp(std::fabs(static_cast<double>(value)), 10 - exponent));
    return sign | ((static_cast<uint64_t>(exponent + 14) << 10) + static_cast<uint64_t>(significand));
}

uint64_t f32_bits(float value) { return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value); }

constexpr std::pair<char, int> rounding_modes[] = {
    {'n', FE_TONEAREST}, {'z', FE_TOWARDZERO}, {'m', FE_DOWNWARD}, {'p', FE_UPWARD}};

template <class T, class F>
T in_mode(int mode, F operation)
{
    std::fesetround(mode);
    volatile T result = operation();
    std::fesetround(FE_TONEAREST);
    return result;
}

TEST(Convert, IntegersExtendAndSaturate)
{
    const Values a = interesting(64, 300, 1);
    const Values s = evaluate("cvt.s64.s32 d, a;", {64, 32}, {a}),
                 u = evaluate("cvt.u64.u32 d, a;", {64, 32}, {a});
    const Values byte = evaluate("cvt.s32.s8 d, a;", {32, 32}, {a});
    const Values narrow = evaluate("cvt.s8.s32 d, a;", {32, 32}, {a});
    const Values sat = evaluate("cvt.sat.u8.s32 d, a;", {16, 32}, {a});
    const Values sat_up = evaluate("cvt.sat.s16.u32 d, a;", {16, 32}, {a});
    for (size_t i = 0; i < a.size(); ++i) {
        const auto word = static_cast<int32_t>(a[i]);
        ASSERT_EQ(s[i], static_cast<uint64_t>(int64_t{word}));
        ASSERT_EQ(u[i], static_cast<uint32_t>(a[i]));
        ASSERT_EQ(byte[i], static_cast<uint32_t>(static_cast<int8_t>(a[i])));
        ASSERT_EQ(narrow[i], static_cast<uint32_t>(static_cast<int8_t>(a[i])));
        ASSERT_EQ(sat[i], static_cast<uint64_t>(std::max(0, std::min(255, word))));
        ASSERT_EQ(sat_up[i], std::min<uint64_t>(0x7fff, static_cast<uint32_t>(a[i])));
    }
}

TEST(Convert, IntegersToFloats)
{
    const Values a = interesting(64, 400, 2);
    for (const auto& [letter, mode] : rounding_modes) {
        const std::string r = std::string("cvt.r") + letter;
        const Values s = evaluate(r + ".f32.s64 d, a;", {32, 64}, {a}),
                     u = evaluate(r + ".f32.u32 d, a;", {32, 32}, {a});
        const Values d = evaluate(r + ".f64.s64 d, a;", {64, 64}, {a});
        for (size_t i = 0; i < a.size(); ++i) {
            volatile int64_t value = static_cast<int64_t>(a[i]);
            volatile int64_t low = static_cast<uint32_t>(a[i]);
            ASSERT_EQ(s[i], f32_bits(in_mode<float>(mode, [&] { return static_cast<float>(value); })))
                << r << value;
            ASSERT_EQ(u[i], f32_bits(in_mode<float>(mode, [&] { return static_cast<float>(low); })));
            ASSERT_EQ(d[i], std::bit_cast<uint64_t>(
                                in_mode<double>(mode, [&] { return static_cast<double>(value); })));
        }
    }
}

TEST(Convert, FloatsToIntegers)
{
    const Values a = interesting_floats(32, 500, 3);
    for (const auto& [letter, mode] : rounding_modes) {
        const std::string r = std::string("cvt.r") + letter + "i";
        const Values s = evaluate(r + ".s32.f32 d, a;", {32, 32}, {a}),
                     u = evaluate(r + ".u8.f32 d, a;", {32, 32}, {a});
        const Values wide = evaluate(r + ".s64.f32 d, a;", {64, 32}, {a});
        const Values same = evaluate(r + ".f32.f32 d, a;", {32, 32}, {a});
        for (size_t i = 0; i < a.size(); ++i) {
            volatile double value = to_f32(a[i]);
            const double whole = in_mode<double>(mode, [&] { return std::nearbyint(value); });
            const bool nan = std::isnan(whole);
            ASSERT_EQ(s[i], nan ? 0
                                : static_cast<uint32_t>(static_cast<int32_t>(
                                      std::max(-2147483648.0, std::min(2147483647.0, whole)))))
                << r << " " << value;
            ASSERT_EQ(u[i], nan ? 0 : static_cast<uint32_t>(std::max(0.0, std::min(255.0, whole))));
            const uint64_t expected = nan || whole <= -0x1p63 ? uint64_t{1} << 63
                                      : whole >= 0x1p63
                                          ? ~uint64_t{0} >> 1
                                          : static_cast<uint64_t>(static_cast<int64_t>(whole));
            ASSERT_EQ(wide[i], expected);
            ASSERT_EQ(same[i], f32_bits(static_cast<float>(whole)));
        }
    }
}

TEST(Convert, SinglesToHalves)
{
    const Values a = interesting_floats(32, 2000, 4), b = interesting_floats(32, 2000, 5);
    const Values half = evaluate("cvt.rn.f16.f32 d, a;", {16, 32}, {a});
    const Values brain = evaluate("cvt.rn.bf16.f32 d, a;", {16, 32}, {a});
    const Values truncated = evaluate("cvt.rz.bf16x2.f32 d, a, b;", {32, 32, 32}, {a, b});
    const Values relu = evaluate("cvt.rn.relu.f16x2.f32 d, a, b;", {32, 32, 32}, {a, b});
    const Values tf32 = evaluate("cvt.rna.tf32.f32 d, a;", {32, 32}, {a});
    const Values back = evaluate("cvt.f32.f16 d, a;", {32, 16}, {half});
    for (size_t i = 0; i < a.size(); ++i) {
        const float value = to_f32(a[i]);
        ASSERT_EQ(half[i], to_half(value));
        ASSERT_EQ(back[i], f32_bits(from_half(half[i])));
        const auto word = static_cast<uint32_t>(a[i]);
        ASSERT_EQ(brain[i],
                  std::isnan(value) ? 0x7fff : (uint64_t{word} + 0x7fff + (word >> 16 & 1)) >> 16 & 0xffff);
        const auto cut = [](uint64_t bits) { return std::isnan(to_f32(bits)) ? 0x7fff : bits >> 16; };
        ASSERT_EQ(truncated[i], cut(a[i]) << 16 | cut(b[i]));
        const auto positive = [&](uint64_t bits) { return to_f32(bits) <= 0 ? 0 : to_half(to_f32(bits)); };
        ASSERT_EQ(relu[i], positive(a[i]) << 16 | positive(b[i]));
        ASSERT_EQ(tf32[i], std::isnan(value)   ? word & ~0x1fffu
                           : std::isinf(value) ? word
                                               : (word + 0x1000) & ~0x1fffu);
    }
}

TEST(Convert, Bytes)
{
    // Every e4m3 value goes to a half and back.
    Values all;
    for (uint64_t i = 0; i < 256; ++i)
        all.push_back(i << 8 | (255 - i));
    const Values halves = evaluate("cvt.rn.f16x2.e4m3x2 d, a;", {32, 16}, {all});
    const Values bytes = evaluate("cvt.rn.satfinite.e4m3x2.f16x2 d, a;", {16, 32}, {halves});
    for (size_t i = 0; i < all.size(); ++i) {
        const auto canonical = [](uint64_t byte) { return (byte & 0x7f) == 0x7f ? 0x7f : byte; };
        ASSERT_EQ(bytes[i], canonical(all[i] >> 8) << 8 | canonical(all[i] & 255));
    }
    const Values value = {f32_bits(1.0f), f32_bits(448.0f), f32_bits(1e9f), f32_bits(-0.0625f),
                          f32_bits(17.0f)};
    const Values expected = {0x38, 0x7e, 0x7e, 0x98, 0x58};
    const Values d = evaluate("cvt.rn.satfinite.e4m3x2.f32 d, a, b;", {16, 32, 32}, {Values(5, 0), value});
    EXPECT_EQ(d, expected);
}

TEST(Compare, SingleOrderedAndNot)
{
    Values a, b;
    cross(interesting_floats(32, 40, 6), interesting_floats(32, 40, 6), a, b);
    const std::pair<const char*, bool (*)(float, float)> comparisons[] = {
        {"eq", [](float x, float y) { return x == y; }},
        {"lt", [](float x, float y) { return x < y; }},
        {"ne", [](float x, float y) { return x < y || x > y; }},
        {"geu", [](float x, float y) { return !(x < y); }},
        {"neu", [](float x, float y) { return x != y; }},
        {"equ", [](float x, float y) { return !(x < y || x > y); }},
        {"num", [](float x, float y) { return x == x && y == y; }},
        {"nan", [](float x, float y) { return x != x || y != y; }}};
    for (const auto& [name, holds] : comparisons) {
        const Values d = evaluate(std::string("setp.") + name + ".f32 d, a, b;", {1, 32, 32}, {a, b});
        const Values q =
            evaluate(std::string("setp.") + name + ".and.f32 p|d, a, b, !q;", {1, 32, 32}, {a, b});
        for (size_t i = 0; i < a.size(); ++i) {
            const bool truth = holds(to_f32(a[i]), to_f32(b[i]));
            ASSERT_EQ(d[i], truth) << name << " " << to_f32(a[i]) << " " << to_f32(b[i]);
            ASSERT_EQ(q[i], !truth && i % 3 != 0);
        }
    }
}

TEST(Compare, IntegersAndHalves)
{
    Values a, b;
    cross(interesting(32, 40, 7), interesting(32, 40, 8), a, b);
    const Values less = evaluate("setp.lt.s32 d, a, b;", {1, 32, 32}, {a, b});
    const Values higher = evaluate("setp.hi.u16 d, a, b;", {1, 16, 16}, {a, b});
    const Values set = evaluate("set.ge.u32.s32 d, a, b;", {32, 32, 32}, {a, b});
    const Values one = evaluate("set.ge.xor.f32.s32 d, a, b, p;", {32, 32, 32}, {a, b});
    const Values half = evaluate("setp.lt.f16x2 p|d, a, b;", {1, 32, 32}, {a, b});
    const Values chosen = evaluate("selp.b32 d, a, b, p;", {32, 32, 32}, {a, b});
    const Values by_sign = evaluate("slct.u32.s32 d, a, b, a;", {32, 32, 32}, {a, b});
    for (size_t i = 0; i < a.size(); ++i) {
        const auto x = static_cast<int32_t>(a[i]), y = static_cast<int32_t>(b[i]);
        ASSERT_EQ(less[i], x < y);
        ASSERT_EQ(higher[i], (a[i] & 0xffff) > (b[i] & 0xffff));
        ASSERT_EQ(set[i], x >= y ? 0xffffffff : 0);
        ASSERT_EQ(one[i], (x >= y) != (i % 2 == 1) ? 0x3f800000 : 0);
        ASSERT_EQ(half[i], from_half(a[i] >> 16 & 0xffff) < from_half(b[i] >> 16 & 0xffff));
        ASSERT_EQ(chosen[i], i % 2 ? a[i] : b[i]);
        ASSERT_EQ(by_sign[i], x >= 0 ? a[i] : b[i]);
    }
}

TEST(Move, PacksAndUnpacks)
{
    const Values a = interesting(32, 200, 9), b = interesting(32, 200, 10);
    const Values packed = evaluate("mov.b64 d, {a, b};", {64, 32, 32}, {a, b});
    const Values swapped =
        evaluate("{ .reg .b16 l, h; mov.b32 {l, h}, a; mov.b32 d, {h, l}; }", {32, 32}, {a});
    const Values upper = evaluate("{ mov.b64 {_, d}, a; }", {32, 64}, {packed});
    const Values wide = evaluate("{ .reg .b128 w; .reg .b64 x; mov.b128 w, {a, b}; mov.b128 {_, d}, w; }",
                                 {64, 64, 64}, {a, b});
    const Values literal = evaluate("add.f32 d, a, 0f3F800000;", {32, 32}, {Values(200, 0x40000000)});
    for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(packed[i], b[i] << 32 | a[i]);
        ASSERT_EQ(swapped[i], (a[i] << 16 | a[i] >> 16) & 0xffffffff);
        ASSERT_EQ(upper[i], b[i]);
        ASSERT_EQ(wide[i], b[i]);
        ASSERT_EQ(literal[i], 0x40400000);
    }
}

}  // namespace
}  // namespace emu
