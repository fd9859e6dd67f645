// White-box tests of host_rows, with the loops of every vector unit that this machine has.
#include "arch/host/rows/rows.hpp"
#include "src/base/convert.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace hg {
namespace {

uint16_t to_16_bits(Type type, float x)
{
    return type == Type::F16 ? float_to_half(x) : float_to_bfloat16(x);
}
float from_16_bits(Type type, uint16_t x)
{
    return type == Type::F16 ? half_to_float(x) : bfloat16_to_float(x);
}

// A hash of (seed, index), as a number of -2 ... 2.
float integer(uint64_t seed, int64_t index)
{
    return static_cast<float>(((seed * 7919 + static_cast<uint64_t>(index) * 2654435761u) >> 9) % 5) - 2;
}

// Any of a few hundred numbers between -1 and 1.
float fraction(uint64_t seed, int64_t index)
{
    return static_cast<float>(((seed * 7919 + static_cast<uint64_t>(index) * 2654435761u) >> 9) % 511) /
               256 -
           1;
}

using Draw = float (*)(uint64_t seed, int64_t index);

struct RowsShape {
    int64_t rows, columns, depth;
    bool along_k;     // the large operand is K-major
    bool few_is_a;    // D has few rows, else few columns
    int64_t gap = 0;  // elements between rows (K-major) or columns of the large operand
};

// The few rows times the large operand, with D in fp32 and elements that depend on their index.
class RowsProduct {
public:
    RowsProduct(Type type, const RowsShape& shape, Draw draw) : type_(type), shape_(shape)
    {
        const int64_t length = shape.along_k ? shape.depth : shape.columns;
        const int64_t lines = shape.along_k ? shape.columns : shape.depth;
        line_ = length + shape.gap;
        many_.assign((lines - 1) * line_ + length, to_16_bits(type, NAN));
        few_.assign(shape.rows * shape.depth * few_stride, to_16_bits(type, NAN));
        for (int64_t p = 0; p < shape.depth; ++p) {
            for (int64_t j = 0; j < shape.columns; ++j)
                many(j, p) = to_16_bits(type, draw(1, j * 1000 + p));
            for (int64_t i = 0; i < shape.rows; ++i)
                few(i, p) = to_16_bits(type, draw(2, i * 1000 + p));
        }
    }

    uint16_t& many(int64_t j, int64_t p) { return many_[shape_.along_k ? j * line_ + p : p * line_ + j]; }
    uint16_t& few(int64_t i, int64_t p) { return few_[(p * shape_.rows + i) * few_stride]; }
    float many_value(int64_t j, int64_t p) { return from_16_bits(type_, many(j, p)); }
    float few_value(int64_t i, int64_t p) { return from_16_bits(type_, few(i, p)); }

    // Results by row of the few and column, in that order.
    std::vector<float> run(const RowsKernels& kernels, int threads = 1)
    {
        Problem p{};
        p.m = shape_.few_is_a ? shape_.rows : shape_.columns;
        p.n = shape_.few_is_a ? shape_.columns : shape_.rows;
        p.k = shape_.depth;
        p.batch = 1;
        p.type_ab = type_;
        p.d.type = Type::F32;
        p.alpha = 1;
        Operand& few = shape_.few_is_a ? p.a : p.b;
        Operand& many = shape_.few_is_a ? p.b : p.a;
        few = {few_.data(), nullptr, few_stride, shape_.rows * few_stride, 0, 0};
        many = {many_.data(), nullptr, shape_.along_k ? line_ : 1, shape_.along_k ? 1 : line_, 0, 0};
        p.d.ld = p.n + 3;
        std::vector<float> d(p.m * p.d.ld, NAN), results;
        p.d.ptr = d.data();
        EXPECT_TRUE(is_few_rows(p));
        Pool pool(threads - 1);
        multiply_rows(pool, kernels, p, threads);
        for (int64_t i = 0; i < shape_.rows; ++i)
            for (int64_t j = 0; j < shape_.columns; ++j)
                results.push_back(shape_.few_is_a ? d[i * p.d.ld + j] : d[j * p.d.ld + i]);
        for (int64_t i = 0; i < p.m; ++i)
            for (int64_t gap = p.n; gap < p.d.ld; ++gap)
                EXPECT_TRUE(std::isnan(d[i * p.d.ld + gap]));
        return results;
    }

private:
    static constexpr int64_t few_stride = 2;
    const Type type_;
    const RowsShape shape_;
    int64_t line_;
    std::vector<uint16_t> many_, few_;
};

class Rows : public testing::TestWithParam<const RowsKernels*> {
protected:
    // All types, directions and sides.
    static void for_each_form(RowsShape shape, const std::function<void(Type, const RowsShape&)>& check)
    {
        for (const Type type : {Type::F16, Type::BF16})
            for (const bool along_k : {true, false})
                for (const bool few_is_a : {true, false}) {
                    shape.along_k = along_k;
                    shape.few_is_a = few_is_a;
                    SCOPED_TRACE(testing::Message()
                                 << name_of(type) << (along_k ? " along k, " : " along columns, ")
                                 << shape.rows << " rows, " << shape.columns << " columns, k "
                                 << shape.depth);
                    check(type, shape);
                }
    }

    // Small integers: every order of summation is exact.
    void expect_exact(const RowsShape& shape, int threads = 1)
    {
        for_each_form(shape, [&](Type type, const RowsShape& form) {
            RowsProduct product(type, form, integer);
            const std::vector<float> got = product.run(kernels_, threads);
            for (int64_t i = 0; i < form.rows; ++i)
                for (int64_t j = 0; j < form.columns; ++j) {
                    float wanted = 0;
                    for (int64_t p = 0; p < form.depth; ++p)
                        wanted += product.few_value(i, p) * product.many_value(j, p);
                    ASSERT_EQ(got[i * form.columns + j], wanted) << "row " << i << " column " << j;
                }
        });
    }

    const RowsKernels& kernels_ = *GetParam();
};

// Sizes around those of a vector and of a step of the loops.
TEST_P(Rows, SmallProductsAreExact)
{
    for (int64_t rows = 1; rows <= few_rows; ++rows)
        for (const int64_t columns : {9, 15, 16, 17, 31, 50})
            for (const int64_t depth : {1, 3, 4, 8, 9, 15, 16, 17, 40, 67})
                expect_exact({rows, columns, depth, false, false, columns % 3});
    for (int64_t columns = 1; columns <= 8; ++columns)
        expect_exact({1, columns, 37, false, false, 5});
}

TEST_P(Rows, ManySlicesAndChunksAreExactForAnyThreads)
{
    for (const int threads : {1, 2, 5}) {
        expect_exact({1, 20, 2 * 8192 + 5, false, false}, threads);
        expect_exact({8, 20, 3 * 1024 + 3, false, false}, threads);
        expect_exact({1, 2 * 4096 + 7, 5, false, false}, threads);
        expect_exact({7, 3 * 576 + 9, 5, false, false}, threads);
    }
}

TEST_P(Rows, SumsAreWithinTheBound)
{
    for (const int64_t depth : {100, 1000, 10000})
        for_each_form({3, 40, depth, false, false}, [&](Type type, const RowsShape& form) {
            RowsProduct product(type, form, fraction);
            const std::vector<float> got = product.run(kernels_);
            for (int64_t i = 0; i < form.rows; ++i)
                for (int64_t j = 0; j < form.columns; ++j) {
                    double wanted = 0, size = 0;
                    for (int64_t p = 0; p < form.depth; ++p) {
                        const double term = double{product.few_value(i, p)} * product.many_value(j, p);
                        wanted += term;
                        size += std::fabs(term);
                    }
                    ASSERT_NEAR(got[i * form.columns + j], wanted,
                                static_cast<double>(depth) * 0x1p-24 * size);
                }
        });
}

// An element's bits do not depend on how many columns there are, on where it lies, or on the threads.
TEST_P(Rows, BitsDependOnTheSumAlone)
{
    for_each_form({4, 5000, 300, false, false}, [&](Type type, const RowsShape& form) {
        RowsProduct product(type, form, fraction);
        const std::vector<float> wanted = product.run(kernels_);
        for (const int threads : {2, 3, 7})
            EXPECT_EQ(product.run(kernels_, threads), wanted) << threads << " threads";
        RowsShape part = form;
        for (const int64_t columns : {9, 18, 1021}) {
            part.columns = columns;
            const std::vector<float> got = RowsProduct(type, part, fraction).run(kernels_);
            for (int64_t i = 0; i < form.rows; ++i)
                for (int64_t j = 0; j < columns; ++j)
                    ASSERT_EQ(got[i * columns + j], wanted[i * form.columns + j])
                        << "row " << i << " column " << j;
        }
    });
}

TEST_P(Rows, NaNAndInfinityStayInTheirColumn)
{
    for (const float special : {NAN, INFINITY, -INFINITY})
        for_each_form({5, 45, 43, false, false}, [&](Type type, const RowsShape& form) {
            for (const int64_t column : {0, 7, 44}) {
                RowsProduct product(type, form, integer);
                const int64_t p = 42 - column;
                product.many(column, p < 0 ? 0 : p) = to_16_bits(type, special);
                const std::vector<float> got = product.run(kernels_);
                for (int64_t i = 0; i < form.rows; ++i)
                    for (int64_t j = 0; j < form.columns; ++j) {
                        const float factor = product.few_value(i, p < 0 ? 0 : p), wanted = special * factor;
                        const float value = got[i * form.columns + j];
                        if (j != column)
                            ASSERT_TRUE(std::isfinite(value));
                        else if (std::isnan(wanted))
                            ASSERT_TRUE(std::isnan(value));
                        else
                            ASSERT_EQ(value, wanted);
                    }
            }
        });
}

TEST_P(Rows, SubnormalOperandsAndResultsAreKept)
{
    for_each_form({2, 20, 3, false, false}, [&](Type type, const RowsShape& form) {
        RowsProduct product(type, form, [](uint64_t, int64_t) { return 0.0f; });
        const uint16_t smallest = 1;
        for (int64_t j = 0; j < form.columns; ++j)
            product.many(j, 1) = smallest;
        product.few(0, 1) = to_16_bits(type, 1);
        product.few(1, 1) = to_16_bits(type, 3);
        const std::vector<float> got = product.run(kernels_);
        for (int64_t j = 0; j < form.columns; ++j) {
            ASSERT_EQ(got[j], from_16_bits(type, smallest));
            ASSERT_EQ(got[form.columns + j], 3 * from_16_bits(type, smallest));
        }
    });
}

std::vector<const RowsKernels*> kernels_here()
{
    std::vector<const RowsKernels*> found;
    for (const RowsKernels* kernels : rows_kernels())
        if (kernels->runs_here())
            found.push_back(kernels);
    return found;
}

INSTANTIATE_TEST_SUITE_P(, Rows, testing::ValuesIn(kernels_here()),
                         [](const auto& info) { return std::string(info.param->name); });

// A thread's part of the work may be the end of one problem of a batch and the beginning of the next.
TEST(RowsBatch, ProblemsAreDividedAmongThreadsAsOne)
{
    constexpr int64_t batch = 7, columns = 37, depth = 1300;
    std::vector<uint16_t> many(batch * columns * depth), few(batch * depth);
    for (size_t i = 0; i < many.size(); ++i)
        many[i] = float_to_half(integer(3, static_cast<int64_t>(i)));
    for (size_t i = 0; i < few.size(); ++i)
        few[i] = float_to_half(integer(4, static_cast<int64_t>(i)));
    Problem p{};
    p.m = 1, p.n = columns, p.k = depth, p.batch = batch;
    p.type_ab = Type::F16;
    p.d.type = Type::F32;
    p.alpha = 1;
    p.a = {few.data(), nullptr, depth, 1, depth, 0};
    p.b = {many.data(), nullptr, depth, 1, columns * depth, 0};
    p.d.ld = p.d.batch_stride = columns;
    std::vector<float> d(batch * columns);
    p.d.ptr = d.data();
    for (const int threads : {1, 2, 3, 5}) {
        Pool pool(threads - 1);
        d.assign(d.size(), NAN);
        multiply_rows(pool, best_rows_kernels(), p, threads);
        for (int64_t z = 0; z < batch; ++z)
            for (int64_t j = 0; j < columns; ++j) {
                float wanted = 0;
                for (int64_t k = 0; k < depth; ++k)
                    wanted += half_to_float(few[z * depth + k]) *
                              half_to_float(many[(z * columns + j) * depth + k]);
                ASSERT_EQ(d[z * columns + j], wanted) << "problem " << z << " column " << j;
            }
    }
}

}  // namespace
}  // namespace hg
