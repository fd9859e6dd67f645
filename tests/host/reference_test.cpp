// Test of the reference: number formats against the FPU, products against OpenBLAS in float64, error bounds
// against a simulated tensor core.
#include "../trial.hpp"
#include "src/tools/support/number.hpp"
#include "src/tools/support/reference.hpp"

#include <cblas.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace hg::test {
namespace {

constexpr hgemm_type_t all_types[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};

TEST(Number, every_16_bit_pattern_survives)
{
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (uint32_t bits = 0; bits < 65536; ++bits) {
            const double value = decode(type, bits);
            if (std::isnan(value))
                EXPECT_TRUE(std::isnan(decode(type, encode(type, value))));
            else
                ASSERT_EQ(encode(type, value), bits) << name_of(type);
        }
}

TEST(Number, decoding_is_ordered_and_known)
{
    EXPECT_EQ(decode(HGEMM_F16, 0x3c00), 1);
    EXPECT_EQ(decode(HGEMM_F16, 0x7bff), 65504);
    EXPECT_EQ(decode(HGEMM_F16, 0x0001), 0x1p-24);
    EXPECT_EQ(decode(HGEMM_BF16, 0x3f80), 1);
    EXPECT_EQ(decode(HGEMM_BF16, 0x0001), 0x1p-133);
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (uint32_t bits = 0; decode(type, bits + 1) < INFINITY; ++bits)
            ASSERT_LT(decode(type, bits), decode(type, bits + 1));
    for (const hgemm_type_t type : all_types)
        EXPECT_TRUE(std::isnan(decode(type, sentinel(type))));
}

// The FPU rounds float64 to float32 itself; between two neighbours of a 16-bit type the nearer one wins,
// and half way the one with an even last bit.
TEST(Number, rounding_is_to_nearest_even)
{
    for (uint64_t i = 0; i < 200'000; ++i) {
        const double value = std::ldexp(normal(1, i), static_cast<int>(hash(2, i) % 320) - 170);
        ASSERT_EQ(round_to(HGEMM_F32, value), static_cast<double>(static_cast<float>(value))) << value;
    }
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (uint32_t bits = 0; decode(type, bits + 1) < INFINITY; ++bits) {
            const double low = decode(type, bits), high = decode(type, bits + 1), middle = (low + high) / 2;
            ASSERT_EQ(round_to(type, middle), bits % 2 == 0 ? low : high);
            ASSERT_EQ(round_to(type, std::nextafter(middle, low)), low);
            ASSERT_EQ(round_to(type, -std::nextafter(middle, high)), -high);
            ASSERT_EQ(truncate_to(type, std::nextafter(high, low)), low);
        }
    EXPECT_EQ(round_to(HGEMM_F16, 65519.9), 65504);
    EXPECT_EQ(round_to(HGEMM_F16, 65520), INFINITY);
    EXPECT_EQ(round_to(HGEMM_BF16, -3.4e38), -INFINITY);
}

Dense random_matrix(int64_t rows, int64_t columns, Data data, hgemm_type_t type, uint64_t seed)
{
    Dense m(rows, columns);
    for (size_t i = 0; i < m.values.size(); ++i)
        m.values[i] = round_to(type, Trial::draw(data, seed, i));
    return m;
}

TEST(Reference, agrees_with_openblas)
{
    for (const Data data : {Data::Integers, Data::Normal, Data::Wide}) {
        const Dense a = random_matrix(130, 517, data, HGEMM_F16, 3),
                    b = random_matrix(517, 211, data, HGEMM_F16, 4);
        Dense expected(a.rows, b.columns), size(a.rows, b.columns);
        const auto multiply_blas = [](const Dense& x, const Dense& y, Dense& out) {
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(x.rows),
                        static_cast<int>(y.columns), static_cast<int>(x.columns), 1, x.values.data(),
                        static_cast<int>(x.columns), y.values.data(), static_cast<int>(y.columns), 0,
                        out.values.data(), static_cast<int>(out.columns));
        };
        const auto magnitude = [](Dense m) {
            std::transform(m.values.begin(), m.values.end(), m.values.begin(),
                           [](double x) { return std::fabs(x); });
            return m;
        };
        multiply_blas(a, b, expected);
        multiply_blas(magnitude(a), magnitude(b), size);
        const Product product = multiply(a, b, Arithmetic::of_device(90));
        for (size_t i = 0; i < expected.values.size(); ++i)
            ASSERT_NEAR(product.sum.values[i], expected.values[i],
                        data == Data::Integers ? 0 : 0x1p-50 * 517 * size.values[i]);
    }
}

// One step: products and accumulator cut to the largest term's fraction bits, added, cut to fp32.
double tensor_core_dot(const Dense& a, const Dense& b, int64_t i, int64_t j, const Arithmetic& arithmetic,
                       int64_t lost)
{
    double accumulator = 0;
    for (int64_t begin = 0; begin < a.columns; begin += arithmetic.k_step) {
        const int64_t end = std::min(begin + arithmetic.k_step, a.columns);
        std::vector<double> terms = {accumulator};
        for (int64_t p = begin; p < end; ++p)
            terms.push_back(p == lost ? 0 : a(i, p) * b(p, j));
        double largest = 0, sum = 0;
        for (const double term : terms)
            largest = std::max(largest, std::fabs(term));
        if (largest == 0)
            continue;
        const int last = std::ilogb(largest) - arithmetic.fraction;
        for (const double term : terms)
            sum += std::ldexp(std::trunc(std::ldexp(term, -last)), last);
        accumulator = truncate_to(HGEMM_F32, sum);
    }
    return accumulator;
}

TEST(Reference, bound_holds_for_tensor_cores)
{
    for (const int cc : {80, 90})
        for (const Data data : {Data::Normal, Data::Wide, Data::Cancelling})
            for (const int64_t k : {1, 7, 16, 100, 1000, 10'000}) {
                const Arithmetic arithmetic = Arithmetic::of_device(cc);
                const Dense a = random_matrix(8, k, data, HGEMM_BF16, 5),
                            b = random_matrix(k, 8, data, HGEMM_BF16, 6);
                const Product product = multiply(a, b, arithmetic);
                for (int64_t i = 0; i < 8; ++i)
                    for (int64_t j = 0; j < 8; ++j)
                        ASSERT_LE(
                            std::fabs(tensor_core_dot(a, b, i, j, arithmetic, -1) - product.sum(i, j)),
                            product.error(i, j))
                            << name_of(data) << " cc " << cc << " k " << k;
            }
}

// The bound is worth something: in fp16, at k = 10 000, it lies far below what one lost product costs.
TEST(Reference, bound_exposes_a_lost_product)
{
    for (const int cc : {80, 90}) {
        constexpr int64_t k = 10'000;
        const Arithmetic arithmetic = Arithmetic::of_device(cc);
        const Dense a = random_matrix(8, k, Data::Normal, HGEMM_F16, 7),
                    b = random_matrix(k, 8, Data::Normal, HGEMM_F16, 8);
        const Product product = multiply(a, b, arithmetic);
        int noticed = 0;
        for (int64_t i = 0; i < 8; ++i)
            for (int64_t j = 0; j < 8; ++j) {
                const double result =
                    round_to(HGEMM_F16, tensor_core_dot(a, b, i, j, arithmetic, (i * 8 + j) * 100));
                noticed += !matches(HGEMM_F16, result, product.sum(i, j), product.error(i, j));
            }
        std::printf("cc %d: a lost product is noticed in %d of 64 elements\n", cc, noticed);
        EXPECT_GT(noticed, 40);
    }
}

}  // namespace
}  // namespace hg::test
