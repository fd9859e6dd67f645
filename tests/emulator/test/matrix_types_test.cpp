// mma.sync and wmma for all element types, against sums of integers that every type holds exactly.
#include "numerics/tensor_core.hpp"

#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace emu {
namespace {

// How an element type writes the numbers it holds; `bits` that it takes in a register.
struct Type {
    std::string name;
    int bits;
    uint64_t (*encode)(int);
    int least, most;  // values to draw
};

template <FormatId Id, int Shift = 0>
uint64_t encode_float(int value)
{
    return from_double(Id, value, Rounding::Nearest) << Shift;
}
uint64_t encode_integer(int value) { return static_cast<uint64_t>(value); }

const Type f16{"f16", 16, encode_float<FormatId::F16>, -8, 8},
    bf16{"bf16", 16, encode_float<FormatId::Bf16>, -8, 8},
    tf32{"tf32", 32, encode_float<FormatId::F32>, -8, 8},
    e4m3{"e4m3", 8, encode_float<FormatId::E4m3>, -8, 8},
    e5m2{"e5m2", 8, encode_float<FormatId::E5m2>, -4, 4},
    e3m2{"e3m2", 8, encode_float<FormatId::E3m2>, -4, 4},
    e2m3{"e2m3", 8, encode_float<FormatId::E2m3>, -7, 7},
    e2m1{"e2m1", 8, encode_float<FormatId::E2m1, 2>, -4, 4},
    packed_e2m1{"e2m1", 4, encode_float<FormatId::E2m1>, -4, 4}, s8{"s8", 8, encode_integer, -128, 127},
    u8{"u8", 8, encode_integer, 0, 255}, s4{"s4", 4, encode_integer, -8, 7},
    u4{"u4", 4, encode_integer, 0, 15}, b1{"b1", 1, encode_integer, 0, 1},
    f64{"f64", 64, encode_float<FormatId::F64>, -1000, 1000};

struct Case {
    std::string before, after;  // around the types
    Type a, b;
    int m, k;
    std::string result = "f32";
    int cc = 120;
    int (*product)(int, int) = [](int x, int y) { return x * y; };
};

// A as rows and B as columns of integers.
struct Numbers {
    std::vector<int> a, b, c;
    explicit Numbers(const Case& t) : a(t.m * t.k), b(8 * t.k), c(t.m * 8)
    {
        std::mt19937 random(7);
        const auto draw = [&](const Type& type) {
            return type.least + static_cast<int>(random() % (type.most - type.least + 1));
        };
        for (int& x : a)
            x = draw(t.a);
        for (int& x : b)
            x = draw(t.b);
        for (int& x : c)
            x = static_cast<int>(random() % 65) - 32;
    }
};

// Registers of one operand, lane by lane: element i of a lane stands where ISA 9.7.14.5 puts a_i or b_i.
std::vector<uint32_t> fragments(const std::vector<int>& values, const Type& type, int rows, int k)
{
    const int elements = rows * k / 32, per_register = std::max(1, 32 / type.bits);
    std::vector<uint32_t> out;
    for (int lane = 0; lane < 32; lane++) {
        std::vector<uint64_t> words(std::max(1, elements / per_register));
        for (int i = 0; i < elements; i++) {
            const int reg = i / per_register, half = rows == 16 ? reg % 2 : 0,
                      next = rows == 16 ? reg / 2 : reg;
            const int row = lane / 4 + 8 * half,
                      column = lane % 4 * per_register + i % per_register + 4 * per_register * next;
            const uint64_t mask = type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1;
            words[reg] |= (type.encode(values[row * k + column]) & mask) << i % per_register * type.bits;
        }
        for (const uint64_t word : words) {
            out.push_back(static_cast<uint32_t>(word));
            if (type.bits == 64)
                out.push_back(static_cast<uint32_t>(word >> 32));
        }
    }
    return out;
}

uint64_t encode_result(const std::string& type, int64_t value)
{
    if (type == "s32")
        return static_cast<uint32_t>(value);
    if (type == "f64")
        return std::bit_cast<uint64_t>(static_cast<double>(value));
    return type == "f16" ? double_to_f16(static_cast<double>(value))
                         : std::bit_cast<uint32_t>(static_cast<float>(value));
}

// Accumulators: c_0, c_1 in row lane / 4, c_2, c_3 eight rows below.
std::vector<uint32_t> accumulators(const std::vector<int64_t>& values, const std::string& type, int m)
{
    std::vector<uint32_t> out;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < m / 4; i++) {
            const uint64_t bits =
                encode_result(type, values[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2]);
            if (type == "f16" && i % 2)
                out.back() |= static_cast<uint32_t>(bits << 16);
            else
                out.push_back(static_cast<uint32_t>(bits));
            if (type == "f64")
                out.push_back(static_cast<uint32_t>(bits >> 32));
        }
    return out;
}

// Loads `count` registers of a lane from %rd<array>, which it numbers from `first` on.
std::string load_array(int array, int first, int count, bool wide)
{
    const std::string at = "%rd" + std::to_string(60 + array), width = wide ? "8" : "4";
    std::string text = "mad.wide.u32 " + at + ", %r0, " + std::to_string(count * (wide ? 8 : 4)) + ", %rd" +
                       std::to_string(array) + ";\n";
    for (int i = 0; i < count; i++)
        text += std::string("ld.global.b") + (wide ? "64 %rd" : "32 %r") + std::to_string(first + i) +
                ", [" + at + "+" + std::to_string(i * (wide ? 8 : 4)) + "];\n";
    return text;
}

std::string vector(int first, int count, bool wide)
{
    std::string text = "{";
    for (int i = 0; i < count; i++)
        text += (i ? ", %" : "%") + std::string(wide ? "rd" : "r") + std::to_string(first + i);
    return text + "}";
}

std::vector<int64_t> expected(const Case& t, const Numbers& numbers)
{
    std::vector<int64_t> d(numbers.c.begin(), numbers.c.end());
    for (int i = 0; i < t.m; i++)
        for (int j = 0; j < 8; j++)
            for (int k = 0; k < t.k; k++)
                d[i * 8 + j] += t.product(numbers.a[i * t.k + k], numbers.b[j * t.k + k]);
    return d;
}

void check(const Case& t, const std::string& scales = "", int64_t scale = 1)
{
    const Numbers numbers(t);
    const bool wide = t.a.bits == 64;
    const auto a = fragments(numbers.a, t.a, t.m, t.k), b = fragments(numbers.b, t.b, 8, t.k);
    const auto c = accumulators({numbers.c.begin(), numbers.c.end()}, t.result, t.m);
    const int per = wide ? 64 : 32, a_count = static_cast<int>(a.size()) / per,
              b_count = static_cast<int>(b.size()) / per, c_count = static_cast<int>(c.size()) / per;
    Device device(t.cc);
    const uint64_t out = device.put(c);
    const std::string name =
        t.before + "." + t.result + "." + t.a.name + "." + t.b.name + "." + t.result + t.after;
    std::string body = load_array(0, 4, a_count, wide) + load_array(1, 12, b_count, wide) +
                       load_array(2, 30, c_count, wide);
    body += name + " " + vector(30, c_count, wide) + ", " + vector(4, a_count, wide) + ", " +
            vector(12, b_count, wide) + ", " + vector(30, c_count, wide) + scales + ";\n";
    for (int i = 0; i < c_count; i++)
        body += std::string("st.global.b") + (wide ? "64" : "32") + " [%rd62+" +
                std::to_string(i * (wide ? 8 : 4)) + "], %" + (wide ? "rd" : "r") + std::to_string(30 + i) +
                ";\n";
    ASSERT_EQ(device.run(ptx_kernel("sm_" + std::to_string(t.cc) + (t.cc >= 90 ? "a" : ""), 3, body),
                         shape_of(1, 32), {device.put(a), device.put(b), out}),
              "")
        << device.message();
    std::vector<int64_t> d = expected(t, numbers);
    for (size_t i = 0; i < d.size(); i++)
        d[i] = numbers.c[i] + (d[i] - numbers.c[i]) * scale;
    EXPECT_EQ(device.get<uint32_t>(out, c.size()), accumulators(d, t.result, t.m)) << name;
}

std::string mma(const std::string& shape, const std::string& more = "")
{
    return "mma.sync.aligned." + shape + ".row.col" + more;
}

TEST(MatrixTypes, Floats)
{
    for (const int cc : {80, 90, 100, 120}) {
        check({mma("m16n8k8"), "", tf32, tf32, 16, 8, "f32", cc});
        check({mma("m16n8k4"), "", tf32, tf32, 16, 4, "f32", cc});
        check({mma("m16n8k8"), "", bf16, bf16, 16, 8, "f32", cc});
        check({mma("m16n8k16"), "", f16, f16, 16, 16, "f16", cc});
    }
    for (const char* result : {"f32", "f16"}) {
        check({mma("m16n8k32"), "", e4m3, e5m2, 16, 32, result, 89});
        check({mma("m16n8k16"), "", e5m2, e4m3, 16, 16, result, 90});
    }
    for (const Type& a : {e4m3, e5m2, e3m2, e2m3, e2m1})
        for (const Type& b : {e4m3, e5m2, e3m2, e2m3, e2m1})
            check({mma("m16n8k32", ".kind::f8f6f4"), "", a, b, 16, 32});
}

TEST(MatrixTypes, Doubles)
{
    check({mma("m8n8k4"), "", f64, f64, 8, 4, "f64", 80});
    check({mma("m16n8k4"), "", f64, f64, 16, 4, "f64", 90});
    check({mma("m16n8k8"), ".rn", f64, f64, 16, 8, "f64", 90});
}

TEST(MatrixTypes, Integers)
{
    for (const Type& a : {s8, u8})
        for (const Type& b : {s8, u8}) {
            check({mma("m8n8k16"), "", a, b, 8, 16, "s32", 80});
            check({mma("m16n8k16"), "", a, b, 16, 16, "s32", 80});
            check({mma("m16n8k32", ".satfinite"), "", a, b, 16, 32, "s32", 80});
        }
    for (const Type& a : {s4, u4})
        for (const Type& b : {s4, u4}) {
            check({mma("m8n8k32"), "", a, b, 8, 32, "s32", 80});
            check({mma("m16n8k32"), "", a, b, 16, 32, "s32", 80});
            check({mma("m16n8k64"), "", a, b, 16, 64, "s32", 80});
        }
    const auto both = [](int x, int y) { return x & y; };
    const auto either = [](int x, int y) { return x ^ y; };
    check({mma("m8n8k128"), ".and.popc", b1, b1, 8, 128, "s32", 80, both});
    check({mma("m16n8k128"), ".xor.popc", b1, b1, 16, 128, "s32", 80, either});
    check({mma("m16n8k256"), ".and.popc", b1, b1, 16, 256, "s32", 80, both});
}

TEST(MatrixTypes, IntegersWrapOrSaturate)
{
    for (const bool saturate : {false, true}) {
        IntegerShape shape{1, 1, 2, {8, true}, {8, false}, saturate, IntegerShape::Multiply};
        const uint32_t a[] = {127, 127}, b[] = {255, 255};
        uint32_t d = 0x7fffffff;
        multiply_accumulate(shape, a, b, &d);
        EXPECT_EQ(d, saturate ? 0x7fffffff : 0x7fffffffu + 2 * 127 * 255);
    }
}

// All scales are the same here: 2 for A, 4 for B.
TEST(MatrixTypes, BlocksAreScaled)
{
    const std::string two = ", %r50, {0, 0}, %r51, {0, 0}";
    const std::string ue8m0 = "mov.b32 %r50, 0x80808080;\nmov.b32 %r51, 0x81818181;\n",
                      ue4m3 = "mov.b32 %r50, 0x40404040;\nmov.b32 %r51, 0x48484848;\n";
    for (const char* vector : {"", ".scale_vec::1X"})
        check({ue8m0 + mma("m16n8k32", std::string(".kind::mxf8f6f4.block_scale") + vector), ".ue8m0", e4m3,
               e2m1, 16, 32},
              two, 8);
    check({ue8m0 + mma("m16n8k64", ".kind::mxf4.block_scale"), ".ue8m0", packed_e2m1, packed_e2m1, 16, 64},
          two, 8);
    check({ue4m3 + mma("m16n8k64", ".kind::mxf4nvf4.block_scale.scale_vec::4X"), ".ue4m3", packed_e2m1,
           packed_e2m1, 16, 64},
          two, 8);
}

// What an H200 does with fp8 in wgmma, and Ada in mma: 13 bits behind the point of the largest exponent.
TEST(MatrixTypes, Fp8KeepsThirteenBits)
{
    Config config;
    config.cc = 90;
    const TensorCore narrow = tensor_core(config, MatrixUnit::Wgmma, FormatId::E4m3),
                     wide = tensor_core(config, MatrixUnit::Mma, FormatId::E4m3);
    EXPECT_EQ(narrow.fraction, 13);
    EXPECT_EQ(wide.fraction, 25);
    const MatrixShape shape{1, 1, 2, FormatId::E4m3, FormatId::E4m3};
    const uint32_t one = 0x38, tiny = 0x01;               // 2^-9
    const uint32_t a[] = {one, tiny}, b[] = {one, 0x18};  // 2^-4: the second product is 2^-13
    for (const auto& [core, c, sum] : {std::tuple{narrow, 0x1p-20f, 1 + 0x1p-13f},
                                       {wide, 0x1p-20f, 1 + 0x1p-13f + 0x1p-20f},
                                       {narrow, 0x1p-14f, 1 + 0x1p-13f}}) {
        uint32_t d = std::bit_cast<uint32_t>(c);
        multiply_accumulate(core, shape, a, b, &d);
        EXPECT_EQ(std::bit_cast<float>(d), sum);
    }
}

}  // namespace
}  // namespace emu
