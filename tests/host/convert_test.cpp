// White-box tests of the host backend's conversions.
#include "src/base/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace hg {
namespace {

// The two half-precision types as numbers of arithmetic, independent of how the library converts.
struct Format {
    Type type;
    int significand, lowest, highest;  // bits of precision; exponents of the smallest and the infinite

    int fraction_bits() const { return significand - 1; }

    double value(uint16_t bits) const
    {
        const int exponent = (bits & 0x7fff) >> fraction_bits();
        const int fraction = bits & ((1 << fraction_bits()) - 1);
        const double sign = bits & 0x8000 ? -1.0 : 1.0;
        if (exponent == (0x7fff >> fraction_bits()))
            return fraction ? NAN : sign * INFINITY;
        if (exponent == 0)
            return sign * std::ldexp(fraction, lowest);
        return sign * std::ldexp(fraction + (1 << fraction_bits()), lowest + exponent - 1);
    }

    double rounded(double x) const
    {
        if (std::isnan(x) || std::isinf(x) || x == 0)
            return x;
        const int unit = std::max(std::ilogb(x) - fraction_bits(), lowest);
        const double result = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
        return std::fabs(result) >= std::ldexp(1.0, highest) ? std::copysign(INFINITY, x) : result;
    }
};

constexpr Format half{Type::F16, 11, -24, 16}, bfloat16{Type::BF16, 8, -133, 128};

float widen(Type type, uint16_t bits)
{
    return type == Type::F16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

uint16_t narrow(Type type, float x) { return type == Type::F16 ? float_to_half(x) : float_to_bfloat16(x); }

bool is_same(double a, double b)
{
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

class Conversion : public testing::TestWithParam<Format> {
protected:
    void expect_rounded(float x)
    {
        const uint16_t bits = narrow(format_.type, x);
        const double wanted = format_.rounded(x);
        if (!is_same(format_.value(bits), wanted))
            ADD_FAILURE() << std::hexfloat << x << " became " << format_.value(bits) << ", not " << wanted;
        else if (std::isnan(wanted) && std::signbit(x) != (bits >> 15))
            ADD_FAILURE() << "NaN lost its sign";
    }

    const Format format_ = GetParam();
};

TEST_P(Conversion, EveryPatternWidensExactlyAndComesBack)
{
    for (int bits = 0; bits < 65536; ++bits) {
        const auto pattern = static_cast<uint16_t>(bits);
        const float x = widen(format_.type, pattern);
        ASSERT_TRUE(is_same(x, format_.value(pattern))) << bits;
        ASSERT_EQ(std::signbit(x), bits >> 15 != 0) << bits;
        if (!std::isnan(x))
            ASSERT_EQ(narrow(format_.type, x), pattern);
        else
            ASSERT_TRUE(std::isnan(widen(format_.type, narrow(format_.type, x)))) << bits;
    }
}

TEST_P(Conversion, TiesAndTheirNeighboursRoundToNearestEven)
{
    for (int bits = 0; bits < 65536 && !HasFailure(); ++bits) {
        const double low = format_.value(static_cast<uint16_t>(bits));
        double high = format_.value(static_cast<uint16_t>(bits + 1));
        if (!std::isfinite(low) || (bits & 0x7fff) == 0x7fff)
            continue;
        if (std::isinf(high))
            high = std::copysign(std::ldexp(1.0, format_.highest), low);
        const auto tie = static_cast<float>(low / 2 + high / 2);
        for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 2 * tie)})
            expect_rounded(x);
    }
}

TEST_P(Conversion, FloatsFromTheWholeRangeRoundToNearestEven)
{
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32) && !HasFailure(); bits += 1021)
        expect_rounded(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (const uint32_t bits :
         {0x7f800000u, 0xff800000u, 0x7f800001u, 0x7fffffffu, 0xffbfffffu, 0x7f7fffffu, 1u})
        expect_rounded(std::bit_cast<float>(bits));
}

TEST_P(Conversion, ArraysAgreeWithSingleElements)
{
    std::vector<uint16_t> patterns(65536);
    for (size_t i = 0; i < patterns.size(); ++i)
        patterns[i] = static_cast<uint16_t>(i * 40503u);  // odd, so every pattern occurs
    for (const int64_t stride : {1, 2, 3, -1, -5}) {
        for (const int64_t count : {0, 1, 7, 31, 64, 255, 256, 257, 13001}) {
            const int64_t offset = stride < 0 ? 65535 : 3;
            std::vector<float> values(count + 1, -7.0f);
            to_float(format_.type, patterns.data(), offset, stride, count, values.data());
            std::vector<uint16_t> back(count + 2, 0xabcd);
            from_float(format_.type, values.data(), count, back.data(), 1);
            for (int64_t i = 0; i < count; ++i) {
                const float x = widen(format_.type, patterns[offset + i * stride]);
                ASSERT_TRUE(is_same(values[i], x)) << stride << " " << i;
                ASSERT_EQ(back[i + 1], narrow(format_.type, values[i])) << stride << " " << i;
            }
            const int64_t step = std::abs(stride), last = std::max<int64_t>(0, count - 1) * step;
            std::vector<uint16_t> scattered(last + 2, 0xabcd);
            from_float(format_.type, values.data(), count, scattered.data(), stride < 0 ? last : 0, stride);
            for (int64_t i = 0; i <= last + 1; ++i) {
                const bool written = i % step == 0 && i / step < count;
                const int64_t from = stride < 0 ? count - 1 - i / step : i / step;
                ASSERT_EQ(scattered[i], written ? back[from + 1] : 0xabcd) << stride << " " << i;
            }
            ASSERT_EQ(values[count], -7.0f);
            ASSERT_EQ(back[0], 0xabcd);
            ASSERT_EQ(back[count + 1], 0xabcd);
        }
    }
}

// Arrays are converted by other instructions than single elements; NaN have the same payload too.
TEST_P(Conversion, ArraysHaveTheBitsOfSingleElements)
{
    std::vector<uint16_t> patterns(65536), narrowed(65536);
    std::vector<float> widened(65536), values(65536);
    for (size_t i = 0; i < patterns.size(); ++i)
        patterns[i] = static_cast<uint16_t>(i);
    to_float(format_.type, patterns.data(), 0, 1, 65536, widened.data());
    for (size_t i = 0; i < patterns.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(widened[i]),
                  std::bit_cast<uint32_t>(widen(format_.type, patterns[i])))
            << i;
    // Every 37th float: all exponents, and rounded bits of all kinds.
    for (uint64_t first = 0; first < uint64_t{1} << 32; first += 37 * values.size()) {
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = std::bit_cast<float>(static_cast<uint32_t>(first + 37 * i));
        from_float(format_.type, values.data(), 65536, narrowed.data(), 0);
        for (size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(narrowed[i], narrow(format_.type, values[i]))
                << std::hex << std::bit_cast<uint32_t>(values[i]);
    }
}

TEST_P(Conversion, NaNIsQuietAndKeepsItsSignAndPayload)
{
    const int fraction = format_.fraction_bits();
    for (const uint32_t sign : {0u, 1u})
        for (uint32_t payload = 1; payload < 1u << fraction; ++payload) {
            const uint32_t exponent = 0x7fffu >> fraction << fraction, quiet = 1u << (fraction - 1);
            const auto pattern = static_cast<uint16_t>(sign << 15 | exponent | payload);
            const uint32_t wide = sign << 31 | 0x7f800000u | payload << (23 - fraction);
            const uint32_t widened = std::bit_cast<uint32_t>(widen(format_.type, pattern));
            // bf16 is widened by a shift and nothing else.
            ASSERT_EQ(widened, format_.type == Type::F16 ? wide | 0x400000u : wide);
            ASSERT_EQ(narrow(format_.type, std::bit_cast<float>(wide)), pattern | quiet);
        }
}

INSTANTIATE_TEST_SUITE_P(Types, Conversion, testing::Values(half, bfloat16),
                         [](const auto& format) { return std::string(name_of(format.param.type)); });

}  // namespace
}  // namespace hg
