// Arguments of batches: arrays of pointers, and strides that are not used.
#include "../library.hpp"
#include "message.hpp"
#include "operands.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace hg::test {
namespace {

using Change = std::function<void(hgemm_args_t&)>;

// hgemm_gemm_ex() with arrays, three problems.
class ArrayArguments : public testing::Test {
protected:
    ArrayArguments() { o.args.size = sizeof o.args; }
    hgemm_status_t multiply() { return hgemm_gemm_ex(library.handle(), &o.args); }

    Library library{nullptr};
    Operands o{Form::Batched};
};

TEST_F(ArrayArguments, are_named)
{
    const std::pair<const char*, Change> missing[] = {
        {"args->a_array", [](auto& g) { g.a_array = nullptr; }},
        {"args->b_array", [](auto& g) { g.b_array = nullptr; }},
        {"args->c_array", [](auto& g) { g.c_array = nullptr; }},
        {"args->d_array", [](auto& g) { g.d_array = nullptr; }},
    };
    for (const auto& [name, change] : missing) {
        Operands wrong(Form::Batched);
        change(wrong.args);
        EXPECT_EQ(hgemm_gemm_ex(library.handle(), &wrong.args), HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_TRUE(contains(hgemm_last_error(), std::string("(") + name + ") is NULL"))
            << hgemm_last_error();
    }
}

TEST_F(ArrayArguments, have_no_strides)
{
    o.args.stride_a = o.args.stride_b = o.args.stride_c = o.args.stride_d = INT64_MAX;
    EXPECT_EQ(multiply(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(o.untouched());
}

// D may be C, element by element; one array for both says that it is.
TEST_F(ArrayArguments, of_c_and_d_that_are_one_have_the_same_lines)
{
    o.args.ldc = m + 1;
    EXPECT_EQ(multiply(), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(hgemm_last_error(), "(args->c_array) equals args->d_array, so args->ldc = 7"))
        << hgemm_last_error();
    o.args.ldc = m;
    o.args.type_c = HGEMM_F32;
    EXPECT_EQ(multiply(), HGEMM_STATUS_INVALID_ARGUMENT);
    o.args.beta = 0;
    EXPECT_EQ(multiply(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

TEST(SingleArguments, have_no_batch_strides)
{
    const Library library(nullptr);
    Operands o(Form::Cblas);
    o.args.size = sizeof o.args;
    o.args.stride_a = o.args.stride_b = o.args.stride_c = o.args.stride_d = INT64_MAX;
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), &o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(o.untouched());
}

// C is checked only where it is read.
TEST(BatchArguments, have_no_stride_of_c_without_beta)
{
    const Library library(nullptr);
    Operands o(Form::General);
    o.args.stride_c = INT64_MAX;
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), &o.args), HGEMM_STATUS_INVALID_ARGUMENT);
    o.args.beta = 0;
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), &o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

// Entries of arrays that the host reads. Array 0 is A's, 1 is B's, 2 is that of C and D.
class Entries : public ArrayArguments {
protected:
    void expect_refused(const char* name, int position, const std::string& text)
    {
        expect_invalid(multiply(), 2,
                       "hgemm_gemm_ex: argument 2 (args->" + std::string(name) + "_array" + text);
        const std::string upper =
            name == std::string("d") ? "C" : std::string(1, static_cast<char>(*name - 32));
        expect_invalid(call(Form::Batched, library.handle(), o.args), position,
                       "hgemm_batched: argument " + std::to_string(position) + " (" + upper + text);
        EXPECT_TRUE(o.untouched());
    }
};

TEST_F(Entries, that_are_null_or_misaligned_are_named)
{
    const struct {
        int array;
        const char* name;
        int position;
    } operands[] = {{0, "a", 9}, {1, "b", 11}, {2, "d", 14}};
    for (const auto& [array, name, position] : operands)
        for (int64_t z = 0; z < count; ++z) {
            o.args.beta = 0;
            void* const was = std::exchange(o.arrays[array][z], nullptr);
            const std::string entry = "[" + std::to_string(z) + "]) is ";
            expect_refused(name, position, entry + "NULL, must point to its elements");
            o.arrays[array][z] = odd(was);
            expect_refused(name, position, entry + "0x");
            o.arrays[array][z] = was;
        }
    o.args.beta = 1;
    o.arrays[2][1] = nullptr;
    expect_invalid(multiply(), 2, "(args->c_array[1]) is NULL");
}

TEST_F(Entries, that_are_not_read_may_be_anything)
{
    o.args.alpha = o.args.beta = 0;
    for (int64_t z = 0; z < count; ++z)
        o.arrays[0][z] = o.arrays[1][z] = nullptr;
    EXPECT_EQ(multiply(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

// The same call as before, with other pointers in the arrays.
TEST_F(Entries, are_looked_at_in_every_call)
{
    EXPECT_EQ(multiply(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(multiply(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    o.arrays[0][2] = nullptr;
    expect_invalid(multiply(), 2, "(args->a_array[2]) is NULL");
}

TEST_F(Entries, of_a_group_are_named)
{
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.group_count = 2;
    const hgemm_args_t problems[2] = {o.args, o.args};
    grouped.problems = problems;
    o.arrays[1][2] = nullptr;
    expect_invalid(hgemm_grouped_ex(library.handle(), &grouped), 2,
                   "(args->problems[0].b_array[2]) is NULL");
    EXPECT_TRUE(o.untouched());
}

}  // namespace
}  // namespace hg::test
