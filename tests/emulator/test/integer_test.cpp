// Integer arithmetic, logic and bit fields against C++ and the ISA's pseudo-code.
#include "ops/wide.hpp"
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

namespace emu {
namespace {

using Wide = Int128;

uint64_t low(Wide value, int bits) { return static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - bits)); }

// Value of a type like "s32".
Wide number(const std::string& type, uint64_t bits)
{
    const int width = std::stoi(type.substr(1));
    bits = low(bits, width);
    if (type[0] == 's' && bits >> (width - 1) & 1)
        return Wide{bits} - (Wide{1} << width);
    return Wide{bits};
}

int width_of(const std::string& type) { return std::stoi(type.substr(1)); }

void check_two(const std::string& opcode, const std::vector<std::string>& types,
               const std::function<Wide(Wide, Wide, int)>& expected, int result_factor = 1)
{
    for (const std::string& type : types) {
        const int bits = width_of(type);
        Values a, b;
        cross(interesting(bits, 40, 1), interesting(bits, 40, 2), a, b);
        const Values d =
            evaluate(opcode + "." + type + " d, a, b;", {bits * result_factor, bits, bits}, {a, b});
        for (size_t i = 0; i < a.size(); ++i)
            ASSERT_EQ(d[i],
                      low(expected(number(type, a[i]), number(type, b[i]), bits), bits * result_factor))
                << opcode << "." << type << " " << std::hex << a[i] << " " << b[i];
    }
}

const std::vector<std::string> all_types = {"u16", "s16", "u32", "s32", "u64", "s64"};

TEST(Integer, SumsDifferencesProducts)
{
    check_two("add", all_types, [](Wide a, Wide b, int) { return a + b; });
    check_two("sub", all_types, [](Wide a, Wide b, int) { return a - b; });
    check_two("mul.lo", all_types, [](Wide a, Wide b, int) {
        return static_cast<Wide>(static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b));
    });
    check_two(
        "mul.wide", {"u16", "s16", "u32", "s32"}, [](Wide a, Wide b, int) { return a * b; }, 2);
    check_two("mul.hi", {"u16", "s16", "u32", "s32", "s64"},
              [](Wide a, Wide b, int bits) { return a * b >> bits; });
    check_two("mul.hi", {"u64"}, [](Wide a, Wide b, int) {
        return static_cast<Wide>(static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b) >> 64);
    });
}

TEST(Integer, QuotientsAndExtrema)
{
    const auto quotient = [](Wide a, Wide b, int) { return b == 0 ? Wide{-1} : a / b; };
    const auto rest = [](Wide a, Wide b, int) { return b == 0 ? a : a % b; };
    check_two("div", all_types, quotient);
    check_two("rem", all_types, rest);
    check_two("min", all_types, [](Wide a, Wide b, int) { return std::min(a, b); });
    check_two("max", all_types, [](Wide a, Wide b, int) { return std::max(a, b); });
    check_two("min.relu", {"s32"}, [](Wide a, Wide b, int) { return std::max(Wide{0}, std::min(a, b)); });
}

TEST(Integer, Saturation)
{
    const auto clamp = [](Wide v) { return std::max(Wide{INT32_MIN}, std::min(Wide{INT32_MAX}, v)); };
    check_two("add.sat", {"s32"}, [&](Wide a, Wide b, int) { return clamp(a + b); });
    check_two("sub.sat", {"s32"}, [&](Wide a, Wide b, int) { return clamp(a - b); });
}

TEST(Integer, TwentyFourBits)
{
    const auto cut_unsigned = [](Wide v) { return v & 0xffffff; };
    const auto cut_signed = [](Wide v) {
        return Wide{static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8};
    };
    check_two("mul24.lo", {"u32"}, [&](Wide a, Wide b, int) { return cut_unsigned(a) * cut_unsigned(b); });
    check_two("mul24.lo", {"s32"}, [&](Wide a, Wide b, int) { return cut_signed(a) * cut_signed(b); });
    check_two("mul24.hi", {"u32"},
              [&](Wide a, Wide b, int) { return cut_unsigned(a) * cut_unsigned(b) >> 16; });
}

TEST(Integer, Pairs)
{
    for (const bool is_signed : {false, true}) {
        const std::string type = is_signed ? "s16" : "u16";
        Values a, b;
        cross(interesting(32, 40, 3), interesting(32, 40, 4), a, b);
        for (const std::string opcode : {"add", "min", "max"}) {
            const Values d = evaluate(opcode + "." + type + "x2 d, a, b;", {32, 32, 32}, {a, b});
            for (size_t i = 0; i < a.size(); ++i) {
                uint64_t expected = 0;
                for (int half = 0; half < 2; ++half) {
                    const Wide x = number(type, a[i] >> (16 * half)), y = number(type, b[i] >> (16 * half));
                    const Wide v = opcode == "add"   ? x + y
                                   : opcode == "min" ? std::min(x, y)
                                                     : std::max(x, y);
                    expected |= low(v, 16) << (16 * half);
                }
                ASSERT_EQ(d[i], expected) << opcode << type;
            }
        }
    }
}

TEST(Integer, MultiplyAdd)
{
    Values a, b;
    cross(interesting(32, 30, 5), interesting(32, 30, 6), a, b);
    const Values c = interesting(64, a.size(), 7);
    const Values mad = evaluate("mad.lo.s32 d, a, b, c;", {32, 32, 32, 32}, {a, b, c});
    const Values wide = evaluate("mad.wide.s32 d, a, b, c;", {64, 32, 32, 64}, {a, b, c});
    const Values sad = evaluate("sad.u32 d, a, b, c;", {32, 32, 32, 32}, {a, b, c});
    for (size_t i = 0; i < a.size(); ++i) {
        const Wide x = number("s32", a[i]), y = number("s32", b[i]);
        ASSERT_EQ(mad[i], low(x * y + Wide{c[i]}, 32));
        ASSERT_EQ(wide[i], low(x * y + Wide{c[i]}, 64));
        const Wide u = number("u32", a[i]), v = number("u32", b[i]);
        ASSERT_EQ(sad[i], low((u < v ? v - u : u - v) + Wide{c[i]}, 32));
    }
}

TEST(Integer, CarryChains)
{
    const Values a = interesting(64, 200, 8), b = interesting(64, 200, 9), c = interesting(64, 200, 10);
    const std::string split =
        "{ .reg .b32 al, ah, bl, bh, dl, dh;\nmov.b64 {al, ah}, a;\nmov.b64 {bl, bh}, b;\n";
    const std::string join = "mov.b64 d, {dl, dh}; }";
    const Values sum =
        evaluate(split + "add.cc.u32 dl, al, bl;\naddc.u32 dh, ah, bh;\n" + join, {64, 64, 64}, {a, b});
    const Values difference =
        evaluate(split + "sub.cc.u32 dl, al, bl;\nsubc.u32 dh, ah, bh;\n" + join, {64, 64, 64}, {a, b});
    // A 64-bit product plus c, from 32-bit pieces.
    const Values product =
        evaluate(split +
                     ".reg .b32 cl, ch, t;\nmov.b64 {cl, ch}, c;\nmad.lo.cc.u32 dl, al, bl, cl;\n"
                     "madc.hi.u32 dh, al, bl, ch;\nmad.lo.u32 dh, al, bh, dh;\n"
                     "mad.lo.u32 dh, ah, bl, dh;\n" +
                     join,
                 {64, 64, 64, 64}, {a, b, c});
    for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(sum[i], a[i] + b[i]);
        ASSERT_EQ(difference[i], a[i] - b[i]);
        ASSERT_EQ(product[i], a[i] * b[i] + c[i]);
    }
}

TEST(Integer, Shifts)
{
    Values a, n;
    cross(interesting(64, 30, 11), {0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x80000000, 0xffffffff}, a,
          n);
    for (const int bits : {16, 32, 64}) {
        const std::string width = std::to_string(bits);
        const Values left = evaluate("shl.b" + width + " d, a, b;", {bits, bits, 32}, {a, n});
        const Values right = evaluate("shr.u" + width + " d, a, b;", {bits, bits, 32}, {a, n});
        const Values arithmetic = evaluate("shr.s" + width + " d, a, b;", {bits, bits, 32}, {a, n});
        for (size_t i = 0; i < a.size(); ++i) {
            const uint64_t x = low(a[i], bits);
            const int count = static_cast<int>(std::min<uint64_t>(n[i], bits));
            ASSERT_EQ(left[i], count >= bits ? 0 : low(Wide{x} << count, bits));
            ASSERT_EQ(right[i], count >= bits ? 0 : x >> count);
            ASSERT_EQ(arithmetic[i], low(number("s" + width, x) >> count, bits));
        }
    }
    const Values b = interesting(32, a.size(), 12);
    const Values funnel = evaluate("shf.l.wrap.b32 d, a, b, c;", {32, 32, 32, 32}, {a, b, n});
    const Values clamped = evaluate("shf.r.clamp.b32 d, a, b, c;", {32, 32, 32, 32}, {a, b, n});
    for (size_t i = 0; i < a.size(); ++i) {
        const uint64_t both = b[i] << 32 | low(a[i], 32);
        ASSERT_EQ(funnel[i], low(both << (n[i] & 31) >> 32, 32));
        ASSERT_EQ(clamped[i], low(both >> std::min<uint64_t>(n[i], 32), 32));
    }
}

TEST(Integer, BitFields)
{
    Values a, b;
    cross(interesting(64, 20, 13), interesting(64, 20, 14), a, b);
    std::mt19937 random(15);
    Values at(a.size()), length(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        at[i] = random() % 80;
        length[i] = random() % 80;
    }
    for (const int bits : {32, 64}) {
        const std::string width = std::to_string(bits);
        const Values s = evaluate("bfe.s" + width + " d, a, b, c;", {bits, bits, 32, 32}, {a, at, length});
        const Values u = evaluate("bfe.u" + width + " d, a, b, c;", {bits, bits, 32, 32}, {a, at, length});
        const Values inserted =
            evaluate("bfi.b" + width + " d, a, b, c, e;", {bits, bits, bits, 32, 32}, {a, b, at, length});
        for (size_t i = 0; i < a.size(); ++i) {
            const int msb = bits - 1, pos = static_cast<int>(at[i]), len = static_cast<int>(length[i]);
            const auto bit = [&](uint64_t v, int k) { return v >> k & 1; };
            const uint64_t sign = len == 0 ? 0 : bit(a[i], std::min(pos + len - 1, msb));
            uint64_t expected_s = 0, expected_u = 0, expected_i = low(b[i], bits);
            for (int k = 0; k <= msb; ++k) {
                const bool inside = k < len && pos + k <= msb;
                expected_s |= (inside ? bit(a[i], pos + k) : sign) << k;
                expected_u |= (inside ? bit(a[i], pos + k) : 0) << k;
                if (inside)
                    expected_i = (expected_i & ~(uint64_t{1} << (pos + k))) | bit(a[i], k) << (pos + k);
            }
            ASSERT_EQ(s[i], expected_s) << width << " " << pos << " " << len;
            ASSERT_EQ(u[i], expected_u);
            ASSERT_EQ(inserted[i], expected_i);
        }
    }
}

TEST(Integer, Counts)
{
    const Values a = interesting(64, 300, 16);
    const Values popc = evaluate("popc.b64 d, a;", {32, 64}, {a}),
                 clz = evaluate("clz.b64 d, a;", {32, 64}, {a});
    const Values brev = evaluate("brev.b32 d, a;", {32, 32}, {a});
    const Values bfind = evaluate("bfind.s32 d, a;", {32, 32}, {a});
    const Values amount = evaluate("bfind.shiftamt.u64 d, a;", {32, 64}, {a});
    for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(popc[i], static_cast<uint64_t>(std::popcount(a[i])));
        ASSERT_EQ(clz[i], static_cast<uint64_t>(std::countl_zero(a[i])));
        const auto word = static_cast<uint32_t>(a[i]);
        uint32_t reversed = 0;
        int highest = -1;
        for (int k = 0; k < 32; ++k) {
            reversed |= (word >> k & 1) << (31 - k);
            if ((word >> k & 1) != word >> 31)
                highest = k;
        }
        ASSERT_EQ(brev[i], reversed);
        ASSERT_EQ(bfind[i], static_cast<uint32_t>(highest));
        ASSERT_EQ(amount[i], a[i] ? static_cast<uint64_t>(std::countl_zero(a[i])) : 0xffffffff);
    }
}

TEST(Integer, LogicAndPermutation)
{
    Values a, b;
    cross(interesting(32, 30, 17), interesting(32, 30, 18), a, b);
    const Values c = interesting(32, a.size(), 19);
    const Values lut = evaluate("lop3.b32 d, a, b, c, 0xe8;", {32, 32, 32, 32}, {a, b, c});
    const Values prmt = evaluate("prmt.b32 d, a, b, c;", {32, 32, 32, 32}, {a, b, c});
    const Values rotated = evaluate("prmt.b32.f4e d, a, b, c;", {32, 32, 32, 32}, {a, b, c});
    const Values cnot = evaluate("cnot.b32 d, a;", {32, 32}, {a});
    for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(lut[i], (a[i] & b[i]) | (a[i] & c[i]) | (b[i] & c[i]));
        const uint64_t bytes = b[i] << 32 | a[i];
        uint64_t expected = 0;
        for (int k = 0; k < 4; ++k) {
            const uint64_t select = c[i] >> (4 * k) & 15, byte = bytes >> (8 * (select & 7)) & 255;
            expected |= (select & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * k);
        }
        ASSERT_EQ(prmt[i], expected);
        ASSERT_EQ(rotated[i], low(bytes >> (8 * (c[i] & 3)), 32));
        ASSERT_EQ(cnot[i], a[i] == 0);
    }
}

}  // namespace
}  // namespace emu
