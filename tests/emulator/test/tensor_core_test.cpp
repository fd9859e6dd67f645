// The arithmetic of tensor cores: against the H200's results, against exact sums where nothing is lost, and
// rule by rule.
#include "numerics/tensor_core.hpp"

#include "test/golden.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace emu {
namespace {

using golden::Inputs;

// The fragments of one mma.sync m16n8k16, as matrices and back.
struct Fragments {
    uint32_t a[256], b[128];
    uint32_t d[128];

    Fragments(const uint32_t* registers, bool half_result)
    {
        for (int lane = 0; lane < 32; lane++) {
            int g = lane / 4, t = 2 * (lane % 4);
            const uint32_t* from = registers + lane * 10;
            for (int i = 0; i < 8; i++)
                a[(g + 8 * (i >> 1 & 1)) * 16 + t + 8 * (i >> 2) + (i & 1)] =
                    static_cast<uint16_t>(from[i / 2] >> 16 * (i & 1));
            for (int i = 0; i < 4; i++)
                b[g * 16 + t + 8 * (i >> 1) + (i & 1)] =
                    static_cast<uint16_t>(from[4 + i / 2] >> 16 * (i & 1));
            for (int i = 0; i < 4; i++)
                d[(g + 8 * (i >> 1)) * 8 + t + (i & 1)] =
                    half_result ? from[6 + i / 2] >> 16 * (i & 1) & 0xffff : from[6 + i];
        }
    }

    void result(uint32_t* out, bool half_result) const
    {
        for (int lane = 0; lane < 32; lane++) {
            for (int i = 0; i < 4; i++)
                out[lane * 4 + i] = 0;
            for (int i = 0; i < 4; i++) {
                uint32_t value = d[(lane / 4 + 8 * (i >> 1)) * 8 + 2 * (lane % 4) + (i & 1)];
                out[lane * 4 + (half_result ? i / 2 : i)] |= half_result ? value << 16 * (i & 1) : value;
            }
        }
    }
};

TEST(TensorCore, GivesTheBitsOfTheH200)
{
    for (int seed = 0; seed < 2; seed++) {
        Inputs inputs(golden::seeds[seed]);
        for (auto form : {golden::bf16, golden::f16, golden::f16_result}) {
            std::vector<uint32_t> in = inputs.mma(form), out(Inputs::mma_cases * 128);
            ASSERT_EQ(golden::hash(in.data(), in.size() * 4), golden::mma_hashes[seed][form].input);
            MatrixShape shape{16, 8, 16, FormatId::F16, FormatId::F16, form == golden::f16_result};
            if (form == golden::bf16)
                shape.a = shape.b = FormatId::Bf16;
            for (int index = 0; index < Inputs::mma_cases; index++) {
                Fragments f(in.data() + index * 320, shape.half_result);
                multiply_accumulate(TensorCore{}, shape, f.a, f.b, f.d);
                f.result(out.data() + index * 128, shape.half_result);
            }
            EXPECT_EQ(golden::hash(out.data(), out.size() * 4), golden::mma_hashes[seed][form].output);
        }
    }
}

uint16_t half_bits(float value) { return double_to_f16(value); }

// One element: the dot product of equal-length rows.
uint32_t dot(const TensorCore& core, std::vector<float> a, std::vector<float> b, uint32_t c,
             bool half_result = false)
{
    a.resize(16), b.resize(16);
    uint32_t left[16], right[16];
    for (int k = 0; k < 16; k++)
        left[k] = half_bits(a[k]), right[k] = half_bits(b[k]);
    multiply_accumulate(core, {1, 1, 16, FormatId::F16, FormatId::F16, half_result}, left, right, &c);
    return c;
}

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

TEST(TensorCore, IntegersAreExact)
{
    std::mt19937 random(3);
    for (TensorCore core : {TensorCore{true, 24, 16}, TensorCore{true, 25, 32}, TensorCore{false, 0, 0}}) {
        MatrixShape shape{33, 37, 32, FormatId::Bf16, FormatId::F16, false};
        std::vector<int> a(33 * 32), b(37 * 32);
        std::vector<uint32_t> left, right;
        for (int& value : a)
            left.push_back(std::bit_cast<uint32_t>(static_cast<float>(value = random() % 17 - 8)) >> 16);
        for (int& value : b)
            right.push_back(half_bits(static_cast<float>(value = random() % 17 - 8)));
        std::vector<uint32_t> d(33 * 37, bits(5));
        multiply_accumulate(core, shape, left.data(), right.data(), d.data());
        for (int m = 0; m < 33; m++)
            for (int n = 0; n < 37; n++) {
                int sum = 5;
                for (int k = 0; k < 32; k++)
                    sum += a[m * 32 + k] * b[n * 32 + k];
                ASSERT_EQ(d[m * 37 + n], bits(static_cast<float>(sum)));
            }
    }
}

TEST(TensorCore, TruncatesBelowTheFractionOfItsGeneration)
{
    TensorCore ampere{true, 24, 8}, hopper{true, 25, 16};
    // 1 + 2^-25 - 1: the small term survives 25 bits, not 24; it lies in the same step on both.
    uint32_t minus_one = bits(-1);
    EXPECT_EQ(dot(hopper, {1, 0x1p-13f}, {1, 0x1p-12f}, minus_one), bits(0x1p-25f));
    EXPECT_EQ(dot(ampere, {1, 0x1p-13f}, {1, 0x1p-12f}, minus_one), bits(0));
    // Truncation is toward zero for either sign.
    EXPECT_EQ(dot(hopper, {-1, -0x1p-13f}, {1, 0x1p-13f}, bits(1)), bits(0));
}

TEST(TensorCore, AmpereAddsInTwoSteps)
{
    std::vector<float> a(16), b(16, 1);
    a[0] = 0x1p-13f,
    b[0] = 0x1p-12f;  // the first step leaves 2^-25, the second adds 1 to it and cuts it off
    a[8] = 1;
    EXPECT_EQ(dot({true, 24, 8}, a, b, bits(0)), bits(1));
    a[9] = -1;
    EXPECT_EQ(dot({true, 24, 8}, a, b, bits(0)), bits(0));
    EXPECT_EQ(dot({true, 25, 16}, a, b, bits(0)), bits(0x1p-25f));
}

TEST(TensorCore, SpecialValues)
{
    TensorCore core;
    EXPECT_EQ(dot(core, {INFINITY}, {2}, bits(1)), bits(INFINITY));
    EXPECT_EQ(dot(core, {INFINITY, INFINITY}, {1, -1}, bits(1)), 0x7fffffffu);
    EXPECT_EQ(dot(core, {INFINITY}, {0}, bits(1)), 0x7fffffffu);
    EXPECT_EQ(dot(core, {1}, {1}, bits(-INFINITY)), bits(-INFINITY));
    EXPECT_EQ(dot(core, {1}, {1}, 0x7fc00001), 0x7fffffffu);
    EXPECT_EQ(dot(core, {NAN}, {1}, half_bits(0), true), 0x7fffu);
    EXPECT_EQ(dot(core, {60000}, {2}, half_bits(0), true), 0x7c00u);
    EXPECT_EQ(dot(core, {60000}, {-2}, half_bits(0), true), 0xfc00u);
    EXPECT_EQ(dot(core, {60000}, {60000}, bits(3.4e38f)), bits(3.4e38f));
    EXPECT_EQ(dot(core, {-0x1p-24f}, {0x1p-24f}, half_bits(0), true), 0u);
}

TEST(TensorCore, HalfResultsRoundOnceToNearestEven)
{
    TensorCore core;
    // 1 + 2^-11 is a tie, 1 + 2^-11 + 2^-20 is above it.
    EXPECT_EQ(dot(core, {1, 0x1p-11f}, {1, 1}, half_bits(0), true), half_bits(1));
    EXPECT_EQ(dot(core, {1, 0x1p-11f, 0x1p-10f}, {1, 1, 0x1p-10f}, half_bits(0), true),
              half_bits(1 + 0x1p-10f));
    EXPECT_EQ(dot(core, {1 + 0x1p-10f, 0x1p-11f}, {1, 1}, half_bits(0), true), half_bits(1 + 0x1p-9f));
}

TEST(TensorCore, FollowsTheDevice)
{
    Config config;
    config.cc = 89;
    EXPECT_EQ(tensor_core(config, MatrixUnit::Mma, FormatId::F16).fraction, 24);
    EXPECT_EQ(tensor_core(config, MatrixUnit::Mma, FormatId::F16).step, 16);
    for (int cc : {90, 100, 120}) {
        config.cc = cc;
        EXPECT_EQ(tensor_core(config, MatrixUnit::Mma, FormatId::F16).fraction, 25);
        EXPECT_EQ(tensor_core(config, MatrixUnit::Mma, FormatId::F16).step, 32);
    }
    config.arithmetic = Arithmetic::Fast;
    EXPECT_FALSE(tensor_core(config, MatrixUnit::Mma, FormatId::F16).exact);
}

TEST(TensorCore, HalfConversions)
{
    for (uint32_t value = 0; value < 0x10000; value++) {
        auto half = static_cast<uint16_t>(value);
        float wide = half_to_float(half, FormatId::F16);
        if (std::isnan(wide))
            EXPECT_EQ(value & 0x7c00, 0x7c00u);
        else
            ASSERT_EQ(double_to_f16(wide), half);
    }
    EXPECT_EQ(double_to_f16(65519.99), 0x7bffu);
    EXPECT_EQ(double_to_f16(65520), 0x7c00u);
    EXPECT_EQ(double_to_f16(0x1p-25), 0u);
    EXPECT_EQ(double_to_f16(0x1.8p-25), 1u);
    EXPECT_EQ(double_to_f16(0x1.ffcp-15), 0x0400u);
}

}  // namespace
}  // namespace emu
