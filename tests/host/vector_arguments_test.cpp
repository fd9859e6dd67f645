// As arguments_test.cpp, for the functions that multiply a matrix with a vector.
#include "../library.hpp"
#include "message.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace hg::test {
namespace {

constexpr int64_t rows = 6, columns = 7;

// y (6) = A (6 x 7) x (7), or with the transpose the other way round.
struct VectorOperands {
    explicit VectorOperands(hgemm_type_t type, hgemm_op_t trans)
    {
        args.type = type;
        args.trans = trans;
        args.m = rows;
        args.n = columns;
        args.a = a.data();
        args.lda = rows;
        args.x = x.data();
        args.y = y.data();
    }
    bool untouched() const { return y == std::vector<uint16_t>(columns, 0x1234); }

    std::vector<uint16_t> a = std::vector<uint16_t>(rows * columns, 0x3c00),
                          x = std::vector<uint16_t>(columns, 0x3c00),
                          y = std::vector<uint16_t>(columns, 0x1234);
    GemvArgs args;
};

struct WrongVector {
    int position;
    const char *name, *value, *wish;
    std::function<void(GemvArgs&)> change;
};

std::vector<WrongVector> wrong_vectors()
{
    return {
        {2, "m", "-1", "at least 0", [](auto& g) { g.m = -1; }},
        {3, "n", "-1", "at least 0", [](auto& g) { g.n = -1; }},
        {5, "A", "NULL", "elements", [](auto& g) { g.a = nullptr; }},
        {5, "A", "0x", "aligned", [](auto& g) { g.a = odd(g.a); }},
        {6, "lda", "5", "at least m = 6", [](auto& g) { g.lda = 5; }},
        {7, "x", "NULL", "elements", [](auto& g) { g.x = nullptr; }},
        {7, "x", "0x", "aligned", [](auto& g) { g.x = odd(g.x); }},
        {8, "incx", "0", "not be 0", [](auto& g) { g.incx = 0; }},
        {8, "incx", "", "too large", [](auto& g) { g.incx = far; }},
        {10, "y", "NULL", "elements", [](auto& g) { g.y = nullptr; }},
        {10, "y", "0x", "aligned", [](auto& g) { g.y = odd(g.y); }},
        {11, "incy", "0", "not be 0", [](auto& g) { g.incy = 0; }},
        {11, "incy", "", "too large", [](auto& g) { g.incy = -far; }},
    };
}

class VectorArguments : public testing::TestWithParam<std::tuple<hgemm_type_t, hgemm_op_t>> {
protected:
    VectorOperands operands() const
    {
        return VectorOperands(std::get<0>(GetParam()), std::get<1>(GetParam()));
    }
    std::string function() const
    {
        return std::string(std::get<0>(GetParam()) == HGEMM_F16 ? "hgemv" : "bgemv") +
               (std::get<1>(GetParam()) == HGEMM_TRANS ? "_t" : "_n");
    }
    Library library{nullptr};
};

TEST_P(VectorArguments, each_wrong_one_is_named_and_the_first_wins)
{
    for (const WrongVector& first : wrong_vectors())
        for (const WrongVector& second : wrong_vectors()) {
            if (second.position < first.position)
                continue;
            VectorOperands o = operands();
            second.change(o.args);
            first.change(o.args);
            const hgemm_status_t status = call_gemv(library.handle(), o.args);
            const std::string text = hgemm_last_error();
            SCOPED_TRACE(std::string(first.name) + " and " + second.name + ": " + text);
            EXPECT_EQ(status, HGEMM_STATUS_INVALID_ARGUMENT);
            EXPECT_EQ(hgemm_last_error_argument(), first.position);
            const std::string where =
                ": argument " + std::to_string(first.position) + " (" + first.name + ") ";
            EXPECT_EQ(text.find(function() + where), 0u);
            EXPECT_TRUE(contains(text, first.value));
            EXPECT_TRUE(contains(text, first.wish));
            EXPECT_TRUE(o.untouched());
        }
}

TEST_P(VectorArguments, unread_operands_may_be_null)
{
    VectorOperands o = operands();
    EXPECT_EQ(call_gemv(nullptr, o.args), HGEMM_STATUS_NOT_INITIALIZED);
    o.args.a = o.args.x = nullptr;
    o.args.alpha = 0;
    EXPECT_EQ(call_gemv(library.handle(), o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(o.untouched());
    o.args.y = nullptr;
    EXPECT_EQ(call_gemv(library.handle(), o.args), HGEMM_STATUS_INVALID_ARGUMENT);
    o.args.alpha = 1;
    o.args.m = 0;
    EXPECT_EQ(call_gemv(library.handle(), o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

std::string name_of_gemv(const testing::TestParamInfo<std::tuple<hgemm_type_t, hgemm_op_t>>& info)
{
    return std::string(name_of(std::get<0>(info.param))) +
           (std::get<1>(info.param) == HGEMM_TRANS ? "_t" : "_n");
}

INSTANTIATE_TEST_SUITE_P(, VectorArguments,
                         testing::Combine(testing::Values(HGEMM_F16, HGEMM_BF16),
                                          testing::Values(HGEMM_NO_TRANS, HGEMM_TRANS)),
                         name_of_gemv);

}  // namespace
}  // namespace hg::test
