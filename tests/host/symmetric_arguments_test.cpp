// As arguments_test.cpp, for the functions whose result is symmetric.
#include "../library.hpp"
#include "message.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace hg::test {
namespace {

constexpr int64_t side = 6, depth = 8, problems = 3;

// C (6 x 6) = op(A) * transpose(op(B)) with op(A) and op(B) 6 x 8, column-major.
struct SymmetricOperands {
    SymmetricOperands(Syrk form, hgemm_type_t type)
    {
        hgemm_args_init(&args, sizeof args);
        args.type_ab = type;
        args.uplo = HGEMM_LOWER;
        args.n = side;
        args.k = depth;
        args.a = a.data();
        args.b = b.data();
        args.d = d.data();
        args.lda = args.ldb = args.ldd = side;
        args.beta = 1;
        args.batch_count = form == Syrk::Strided ? problems : 1;
        args.stride_a = side * depth;
        args.stride_d = side * side;
    }
    bool untouched() const { return d == std::vector<uint16_t>(problems * side * side, 0x1234); }

    std::vector<uint16_t> a = std::vector<uint16_t>(problems * side * depth, 0x3c00), b = a,
                          d = std::vector<uint16_t>(problems * side * side, 0x1234);
    hgemm_args_t args;
};

std::string function_name(Syrk form, hgemm_type_t type)
{
    const std::string name = type == HGEMM_F16 ? "hsyrk" : "bsyrk";
    return name + (form == Syrk::Two ? "x" : form == Syrk::Strided ? "_strided_batched" : "");
}

struct WrongSymmetric {
    const char *name, *value, *wish;
    std::function<void(hgemm_args_t&)> change;
};

std::vector<WrongSymmetric> all_wrong()
{
    const char *layouts = "must be 101 (row-major) or 102", *ops = "must be 111 (NO_TRANS), 112 (TRANS)",
               *uplos = "must be 121 (upper), 122 (lower) or 123 (both)";
    const auto layout = [](int value) { return static_cast<hgemm_layout_t>(value); };
    const auto uplo = [](int value) { return static_cast<hgemm_uplo_t>(value); };
    const auto op = [](int value) { return static_cast<hgemm_op_t>(value); };
    return {
        {"layout", "100", layouts, [=](auto& g) { g.layout = layout(100); }},
        {"layout", "103", layouts, [=](auto& g) { g.layout = layout(103); }},
        {"uplo", "0", uplos, [=](auto& g) { g.uplo = uplo(0); }},
        {"uplo", "120", uplos, [=](auto& g) { g.uplo = uplo(120); }},
        {"uplo", "124", uplos, [=](auto& g) { g.uplo = uplo(124); }},
        {"trans", "0", ops, [=](auto& g) { g.transa = op(0); }},
        {"trans", "114", ops, [=](auto& g) { g.transa = op(114); }},
        {"n", "-1", "at least 0", [](auto& g) { g.n = -1; }},
        {"k", "-9000000000", "at least 0", [](auto& g) { g.k = -9'000'000'000; }},
        {"A", "NULL", "elements", [](auto& g) { g.a = nullptr; }},
        {"A", "0x", "aligned", [](auto& g) { g.a = odd(g.a); }},
        {"lda", "5", "at least n = 6", [](auto& g) { g.lda = 5; }},
        {"lda", "-6", "at least n = 6", [](auto& g) { g.lda = -6; }},
        {"lda", "", "too large", [](auto& g) { g.lda = far; }},
        {"stride_a", "", "too large", [](auto& g) { g.stride_a = far; }},
        {"B", "NULL", "elements", [](auto& g) { g.b = nullptr; }},
        {"B", "0x", "aligned", [](auto& g) { g.b = odd(g.b); }},
        {"ldb", "5", "at least n = 6", [](auto& g) { g.ldb = 5; }},
        {"ldb", "", "too large", [](auto& g) { g.ldb = far; }},
        {"C", "NULL", "elements", [](auto& g) { g.d = nullptr; }},
        {"C", "0x", "aligned", [](auto& g) { g.d = odd(g.d); }},
        {"ldc", "5", "at least n = 6", [](auto& g) { g.ldd = 5; }},
        {"ldc", "", "too large", [](auto& g) { g.ldd = far; }},
        {"stride_c", "0", "must separate the outputs", [](auto& g) { g.stride_d = 0; }},
        {"stride_c", "35", "problems 0 and 1 share elements", [](auto& g) { g.stride_d = 35; }},
        {"stride_c", "", "too large", [](auto& g) { g.stride_d = far; }},
        {"batch_count", "-1", "at least 0", [](auto& g) { g.batch_count = -1; }},
    };
}

// In the prototype, from 1 on; 0 if the function has no such argument.
int position(Syrk form, const std::string& name)
{
    std::vector<std::string> names = {"handle", "layout", "uplo", "trans", "n", "k", "alpha", "A", "lda"};
    if (form == Syrk::Two)
        names.insert(names.end(), {"B", "ldb"});
    if (form == Syrk::Strided)
        names.emplace_back("stride_a");
    names.insert(names.end(), {"beta", "C", "ldc"});
    if (form == Syrk::Strided)
        names.insert(names.end(), {"stride_c", "batch_count"});
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? 0 : static_cast<int>(at - names.begin()) + 1;
}

class SymmetricArguments : public testing::TestWithParam<std::tuple<Syrk, hgemm_type_t>> {
protected:
    Syrk form() const { return std::get<0>(GetParam()); }
    SymmetricOperands operands() const { return SymmetricOperands(form(), std::get<1>(GetParam())); }
    std::string function() const { return function_name(form(), std::get<1>(GetParam())); }
    std::vector<WrongSymmetric> wrong() const
    {
        std::vector<WrongSymmetric> list = all_wrong();
        std::erase_if(list, [this](const WrongSymmetric& w) { return position(form(), w.name) == 0; });
        return list;
    }
    Library library{nullptr};
};

TEST_P(SymmetricArguments, each_wrong_one_is_named_and_the_first_wins)
{
    for (const WrongSymmetric& first : wrong())
        for (const WrongSymmetric& second : wrong()) {
            const int expected = position(form(), first.name);
            if (position(form(), second.name) < expected)
                continue;
            // A stride can be wrong only in a batch.
            if (contains(first.name, "stride") && second.name == std::string("batch_count"))
                continue;
            SymmetricOperands o = operands();
            second.change(o.args);
            first.change(o.args);
            const hgemm_status_t status = call_syrk(form(), library.handle(), o.args);
            const std::string text = hgemm_last_error();
            SCOPED_TRACE(std::string(first.name) + " and " + second.name + ": " + text);
            EXPECT_EQ(status, HGEMM_STATUS_INVALID_ARGUMENT);
            EXPECT_EQ(hgemm_last_error_argument(), expected);
            const std::string where = ": argument " + std::to_string(expected) + " (" + first.name + ") ";
            EXPECT_EQ(text.find(function() + where), 0u);
            EXPECT_TRUE(contains(text, first.value));
            EXPECT_TRUE(contains(text, first.wish));
            EXPECT_TRUE(o.untouched());
        }
}

TEST_P(SymmetricArguments, handle_comes_first)
{
    SymmetricOperands o = operands();
    o.args.n = -1;
    EXPECT_EQ(call_syrk(form(), nullptr, o.args), HGEMM_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(hgemm_last_error_argument(), 1);
    EXPECT_EQ(hgemm_last_error(),
              function() + ": argument 1 (handle) is NULL, must come from hgemm_create");
    EXPECT_TRUE(o.untouched());
}

TEST_P(SymmetricArguments, c_lies_apart)
{
    const auto refuse = [this](const SymmetricOperands& o, const char* text) {
        expect_invalid(call_syrk(form(), library.handle(), o.args), position(form(), "C"), text);
        EXPECT_TRUE(o.untouched());
    };
    SymmetricOperands o = operands();
    o.args.a = &o.d[side * side - 1];  // the last element of C
    refuse(o, "(C) overlaps A, must lie apart from it");
    o = operands();
    o.args.b = o.d.data();
    if (form() == Syrk::Two)
        refuse(o, "(C) overlaps B, must lie apart from it");
    else
        EXPECT_EQ(call_syrk(form(), library.handle(), o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

TEST_P(SymmetricArguments, unread_operands_may_be_null)
{
    for (const int empty : {0, 1, 2, 3})
        for (const int null : {1, 2, 4, 7}) {
            SymmetricOperands o = operands();
            hgemm_args_t& g = o.args;
            (empty == 1 ? g.n : empty == 2 ? g.k : g.ldd) = empty == 0 || empty == 3 ? side : 0;
            g.alpha = empty == 3 ? 0 : 1;
            if (null & 1)
                g.a = nullptr;
            if (null & 2)
                g.b = nullptr;
            if (null & 4)
                g.d = nullptr;
            const int read = form() == Syrk::Two ? 3 : 1;
            const bool fine = !((null & read) && empty == 0) && !((null & 4) && empty != 1);
            EXPECT_EQ(call_syrk(form(), library.handle(), g),
                      fine ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_INVALID_ARGUMENT)
                << "empty " << empty << " null " << null << ": " << hgemm_last_error();
        }
}

// Of real numbers.
TEST_P(SymmetricArguments, conjugate_transpose_is_the_transpose)
{
    std::vector<uint16_t> results[2];
    for (const int i : {0, 1}) {
        SymmetricOperands o = operands();
        for (size_t j = 0; j < o.a.size(); ++j)
            o.a[j] = o.b[j] = static_cast<uint16_t>(0x3c00 + 16 * (j % 7));
        o.args.transa = i == 0 ? HGEMM_TRANS : HGEMM_CONJ_TRANS;
        o.args.lda = o.args.ldb = depth;
        EXPECT_EQ(call_syrk(form(), library.handle(), o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_FALSE(o.untouched());
        results[i] = o.d;
    }
    EXPECT_EQ(results[0], results[1]);
}

std::string name_of_syrk(const testing::TestParamInfo<std::tuple<Syrk, hgemm_type_t>>& info)
{
    return function_name(std::get<0>(info.param), std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(, SymmetricArguments,
                         testing::Combine(testing::Values(Syrk::One, Syrk::Two, Syrk::Strided),
                                          testing::Values(HGEMM_F16, HGEMM_BF16)),
                         name_of_syrk);

}  // namespace
}  // namespace hg::test
