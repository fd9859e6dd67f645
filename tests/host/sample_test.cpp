// How hgemm_tune() holds a kernel's result against another's.
#include "src/tune/elements.hpp"
#include "src/tune/sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace hg {
namespace {

float from_bits(uint16_t bits, Type type)
{
    char bytes[sizeof bits];
    std::memcpy(bytes, &bits, sizeof bits);
    return value_of(bytes, type);
}

TEST(Sample, ReadsElements)
{
    EXPECT_EQ(from_bits(0x3c00, Type::F16), 1.0f);
    EXPECT_EQ(from_bits(0xc500, Type::F16), -5.0f);
    EXPECT_EQ(from_bits(0x7bff, Type::F16), 65504.0f);
    EXPECT_EQ(from_bits(0x0001, Type::F16), 0x1p-24f);
    EXPECT_EQ(from_bits(0x83ff, Type::F16), -1023 * 0x1p-24f);
    EXPECT_EQ(from_bits(0xfc00, Type::F16), -INFINITY);
    EXPECT_TRUE(std::isnan(from_bits(0x7e00, Type::F16)));
    EXPECT_TRUE(std::signbit(from_bits(0x8000, Type::F16)));
    EXPECT_EQ(from_bits(0xbfc0, Type::BF16), -1.5f);
    EXPECT_TRUE(std::isnan(from_bits(0xffff, Type::BF16)));
}

TEST(Sample, IsSpreadOverAll)
{
    EXPECT_TRUE(spread_over(0, 4, 2).empty());
    EXPECT_EQ(spread_over(5, 4, 2), (std::vector<int64_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(spread_over(8, 4, 2), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(spread_over(9, 4, 2), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 7, 8}));
    EXPECT_EQ(spread_over(100, 3, 2), (std::vector<int64_t>{0, 1, 49, 50, 98, 99}));
    EXPECT_EQ(spread_over(100, 2, 1), (std::vector<int64_t>{0, 99}));
    const std::vector<int64_t> large = spread_over(int64_t{1} << 40, 64, 8);
    EXPECT_EQ(large.size(), 512u);
    EXPECT_EQ(large.back(), (int64_t{1} << 40) - 1);
}

// Two orders of fp32 sums pass, a lost product does not.
TEST(Sample, KnowsRoundingFromDefects)
{
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const int64_t k : {16, 264, 4096}) {
        float forwards = 0, backwards = 0, lost = 0;
        double norm_a = 0, norm_b = 0;
        std::vector<float> products;
        for (int64_t i = 0; i < k; ++i) {
            const float a = normal(random), b = normal(random);
            norm_a += a * a;
            norm_b += b * b;
            products.push_back(a * b);
        }
        products[0] = 4;
        for (size_t i = 0; i < products.size(); ++i) {
            forwards += products[i];
            backwards += products[products.size() - 1 - i];
            lost += i == 0 ? 0 : products[i];
        }
        const double allowed = allowed_difference(k, Activation::None, std::sqrt(norm_a * norm_b), 0);
        EXPECT_TRUE(is_close(Type::F32, forwards, backwards, allowed)) << k;
        EXPECT_FALSE(is_close(Type::F32, forwards, lost, allowed)) << k;
    }
    EXPECT_GT(allowed_difference(64, Activation::Silu, 10, 1),
              allowed_difference(64, Activation::Relu, 10, 1));
    EXPECT_GT(allowed_difference(64, Activation::None, 10, 1),
              allowed_difference(64, Activation::None, 10, 0));
    EXPECT_EQ(allowed_difference(0, Activation::None, 0, 0), 0);
}

TEST(Sample, AllowsOneRoundingOfEach)
{
    EXPECT_TRUE(is_close(Type::F16, 1.0f, 1 + 0x1p-10f, 0));
    EXPECT_FALSE(is_close(Type::F16, 1.0f, 1 + 0x1p-9f, 0));
    EXPECT_TRUE(is_close(Type::F16, 0.0f, 0x1p-24f, 0));
    EXPECT_TRUE(is_close(Type::BF16, 1.0f, 1 + 0x1p-7f, 0));
    EXPECT_FALSE(is_close(Type::BF16, 1.0f, 1 + 0x1p-6f, 0));
    EXPECT_TRUE(is_close(Type::F32, 1.0f, std::nextafter(1.0f, 2.0f), 0));
    EXPECT_FALSE(is_close(Type::F32, 1.0f, 1 + 0x1p-22f, 0));
}

TEST(Sample, ComparesWhatIsNotFinite)
{
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = INFINITY;
    EXPECT_TRUE(is_close(Type::F16, nan, nan, 0));
    EXPECT_FALSE(is_close(Type::F16, nan, 1, 1));
    EXPECT_FALSE(is_close(Type::F16, 1, nan, 1));
    EXPECT_TRUE(is_close(Type::F16, infinity, infinity, 0));
    EXPECT_TRUE(is_close(Type::F16, infinity, 65504, 1)) << "rounded there or here";
    EXPECT_FALSE(is_close(Type::F16, infinity, 30000, 1));
    EXPECT_FALSE(is_close(Type::F16, infinity, -infinity, 1));
    EXPECT_FALSE(is_close(Type::F32, infinity, 1e30f, 1));
    EXPECT_TRUE(is_close(Type::F32, nan, 1, infinity)) << "nothing is known";
    EXPECT_TRUE(is_close(Type::F32, nan, 1, nan));
}

}  // namespace
}  // namespace hg
