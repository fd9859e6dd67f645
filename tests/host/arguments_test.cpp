// Every wrong argument of every function that multiplies, one by one and in pairs: the status, the
// argument's position, a message with name, value and wish, and outputs left alone.
#include "../library.hpp"
#include "message.hpp"
#include "operands.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace hg::test {
namespace {

using Change = std::function<void(hgemm_args_t&)>;

struct Wrong {
    const char* name;   // of the argument; a member of hgemm_args_t is "args->name"
    std::string value;  // what the message says of it
    std::string wish;
    Change change;
};

std::vector<Wrong> wrong_scalars()
{
    return {
        {"m", "-1", "at least 0", [](auto& g) { g.m = -1; }},
        {"n", "-2", "at least 0", [](auto& g) { g.n = -2; }},
        {"k", "-9000000000", "at least 0", [](auto& g) { g.k = -9'000'000'000; }},
        {"layout", "100", "101 (row-major) or 102",
         [](auto& g) { g.layout = static_cast<hgemm_layout_t>(100); }},
        {"layout", "103", "101 (row-major) or 102",
         [](auto& g) { g.layout = static_cast<hgemm_layout_t>(103); }},
        {"transa", "0", "111 (NO_TRANS), 112 (TRANS)",
         [](auto& g) { g.transa = static_cast<hgemm_op_t>(0); }},
        {"transb", "114", "111 (NO_TRANS), 112 (TRANS)",
         [](auto& g) { g.transb = static_cast<hgemm_op_t>(114); }},
        {"batch_count", "-1", "at least 0", [](auto& g) { g.batch_count = -1; }},
    };
}

std::vector<Wrong> wrong_matrices()
{
    return {
        {"A", "NULL", "elements", [](auto& g) { g.a = nullptr; }},
        {"A", "0x", "aligned", [](auto& g) { g.a = odd(g.a); }},
        {"B", "NULL", "elements", [](auto& g) { g.b = nullptr; }},
        {"B", "0x", "aligned", [](auto& g) { g.b = odd(g.b); }},
        {"C", "NULL", "elements", [](auto& g) { g.c = g.d = nullptr; }},
        {"C", "0x", "aligned", [](auto& g) { g.c = g.d = odd(g.d); }},
        {"lda", "5", "at least m = 6", [](auto& g) { g.lda = 5; }},
        {"lda", "-6", "at least m = 6", [](auto& g) { g.lda = -6; }},
        {"lda", std::to_string(far), "too large", [](auto& g) { g.lda = far; }},
        {"ldb", "7", "at least k = 8", [](auto& g) { g.ldb = 7; }},
        {"ldb", "0", "at least k = 8", [](auto& g) { g.ldb = 0; }},
        {"ldc", "5", "at least m = 6", [](auto& g) { g.ldc = g.ldd = 5; }},
        {"stride_a", std::to_string(far), "too large", [](auto& g) { g.stride_a = far; }},
        {"stride_b", std::to_string(-far), "too large", [](auto& g) { g.stride_b = -far; }},
        {"stride_c", "0", "must separate the outputs", [](auto& g) { g.stride_c = g.stride_d = 0; }},
        {"stride_c", "41", "problems 0 and 1 share elements",
         [](auto& g) { g.stride_c = g.stride_d = 41; }},
        {"stride_c", "-20", "must separate the outputs of 3 problems",
         [](auto& g) { g.stride_c = g.stride_d = -20; }},
        {"stride_c", std::to_string(far), "too large", [](auto& g) { g.stride_c = g.stride_d = far; }},
    };
}

template <typename T>
T* odd_array(T* array)
{
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(array) + 4);
}

std::vector<Wrong> wrong_arrays()
{
    std::vector<Wrong> list = {
        {"A", "NULL", "array", [](auto& g) { g.a_array = nullptr; }},
        {"B", "NULL", "array", [](auto& g) { g.b_array = nullptr; }},
        {"C", "NULL", "array", [](auto& g) { g.c_array = nullptr, g.d_array = nullptr; }},
        {"A", "NULL", "array",
         [](auto& g) { g.a_array = g.b_array = g.c_array = nullptr, g.d_array = nullptr; }},
        {"A", "0x", "aligned to 8 bytes", [](auto& g) { g.a_array = odd_array(g.a_array); }},
        {"B", "0x", "aligned to 8 bytes", [](auto& g) { g.b_array = odd_array(g.b_array); }},
        {"C", "0x", "aligned to 8 bytes", [](auto& g) { g.c_array = g.d_array = odd_array(g.d_array); }},
    };
    for (const Wrong& wrong : wrong_matrices())
        if (wrong.name[0] == 'l')
            list.push_back(wrong);
    return list;
}

std::vector<Wrong> wrong_members()
{
    std::vector<Wrong> list = wrong_scalars();
    for (Wrong wrong : wrong_matrices())
        if (wrong.name[0] != 'C' && std::string(wrong.name).back() != 'c') {
            if (*wrong.name == 'A' || *wrong.name == 'B')
                wrong.name = *wrong.name == 'A' ? "a" : "b";
            list.push_back(wrong);
        }
    const auto type = [](int value) { return static_cast<hgemm_type_t>(value); };
    const auto uplo = [](int value) { return static_cast<hgemm_uplo_t>(value); };
    const std::vector<Wrong> more = {
        {"size", "8", "hgemm_args_init", [](auto& g) { g.size = 8; }},
        {"type_ab", "3", "1 (F16) or 2 (BF16)", [=](auto& g) { g.type_ab = type(3); }},
        {"type_c", "0", "1 (F16), 2 (BF16) or 3 (F32)", [=](auto& g) { g.type_c = type(0); }},
        {"type_d", "4", "1 (F16), 2 (BF16) or 3 (F32)", [=](auto& g) { g.type_d = type(4); }},
        {"alpha_device", "0x", "aligned", [](auto& g) { g.alpha_device = odd(&g.alpha); }},
        {"beta_device", "0x", "aligned", [](auto& g) { g.beta_device = odd(&g.beta); }},
        {"c", "NULL", "elements", [](auto& g) { g.c = nullptr; }},
        {"c", "0x", "aligned", [](auto& g) { g.c = odd(g.c); }},
        {"c", "equals args->d", "type_c", [=](auto& g) { g.type_c = HGEMM_F32; }},
        {"c", "equals args->d", "args->ldd = 9", [](auto& g) { g.ldd = 9, g.stride_c = g.stride_d = 100; }},
        {"c", "equals args->d", "stride_c", [](auto& g) { g.stride_c = 43; }},
        {"ldc", "5", "at least m = 6", [](auto& g) { g.c = g.b, g.ldc = 5; }},
        {"stride_c", std::to_string(far), "too large", [](auto& g) { g.c = g.b, g.stride_c = far; }},
        {"d", "NULL", "elements", [](auto& g) { g.d = nullptr; }},
        {"d", "0x", "aligned", [](auto& g) { g.d = odd(g.d); }},
        {"ldd", "5", "at least m = 6", [](auto& g) { g.c = g.b, g.ldd = 5; }},
        {"stride_d", "0", "must separate the outputs", [](auto& g) { g.c = g.b, g.stride_d = 0; }},
        {"stride_d", "6", "must separate the outputs", [](auto& g) { g.c = g.b, g.stride_d = 6; }},
        {"bias_mode", "3", "0 (none), 1 (along m) or 2",
         [](auto& g) { g.bias_mode = static_cast<hgemm_bias_t>(3); }},
        {"bias_type", "0", "1 (F16), 2 (BF16) or 3 (F32)", [=](auto& g) { g.bias_type = type(0); }},
        {"bias", "NULL", "elements", [](auto& g) { g.bias = nullptr; }},
        {"bias", "0x", "NULL while args->bias_mode is 0", [](auto& g) { g.bias_mode = HGEMM_BIAS_NONE; }},
        {"stride_bias", std::to_string(far), "too large", [](auto& g) { g.stride_bias = far; }},
        {"bias", "0x", "aligned", [](auto& g) { g.bias = odd(g.bias); }},
        {"activation", "5", "0 to 4", [](auto& g) { g.activation = static_cast<hgemm_activation_t>(5); }},
        {"aux", "0x", "aligned", [](auto& g) { g.aux = odd(g.aux); }},
        {"ldaux", "5", "at least m = 6", [](auto& g) { g.ldaux = 5; }},
        {"stride_aux", "0", "must separate the outputs", [](auto& g) { g.stride_aux = 0; }},
        {"stride_aux", "8", "must separate the outputs", [](auto& g) { g.stride_aux = 8; }},
        {"flags", "1", "must be 0", [](auto& g) { g.flags = 1; }},
        {"uplo", "120", "0 (none), 121 (upper), 122 (lower)", [=](auto& g) { g.uplo = uplo(120); }},
        {"uplo", "124", "123 (both)", [=](auto& g) { g.uplo = uplo(124); }},
        {"uplo", "121", "args->m = 6 must equal args->n = 7", [](auto& g) { g.uplo = HGEMM_UPPER; }},
        {"uplo", "122", "args->bias_mode must be 0", [](auto& g) { g.uplo = HGEMM_LOWER, g.n = m; }},
        {"uplo", "123", "args->activation must be 0",
         [](auto& g) {
             g.uplo = HGEMM_BOTH, g.n = m;
             g.bias_mode = HGEMM_BIAS_NONE, g.bias = nullptr, g.activation = HGEMM_ACTIVATION_SILU;
         }},
        {"uplo", "121", "args->aux must be 0",
         [](auto& g) {
             g.uplo = HGEMM_UPPER, g.n = m;
             g.bias_mode = HGEMM_BIAS_NONE, g.bias = nullptr;
         }},
        {"uplo", "121", "args->gate.block must be 0",
         [](auto& g) {
             g.uplo = HGEMM_UPPER, g.n = m, g.gate.block = 3, g.c = g.b;
             g.bias_mode = HGEMM_BIAS_NONE, g.bias = nullptr, g.aux = nullptr;
         }},
        {"gate.block", "-1", "at least 0", [](auto& g) { g.gate.block = -1; }},
        {"gate.block", "2", "twice of it must divide args->m = 6", [](auto& g) { g.gate.block = 2; }},
        {"gate.block", "6", "twice of it must divide args->m = 6", [](auto& g) { g.gate.block = m; }},
        {"gate.block", std::to_string(INT64_MAX), "must divide", [](auto& g) { g.gate.block = INT64_MAX; }},
        {"gate.block", "0", "other members of args->gate must be 0", [](auto& g) { g.gate.limit = 1; }},
        {"gate.block", "0", "other members of args->gate must be 0", [](auto& g) { g.gate.offset = 1; }},
        {"gate.limit", "-1", "finite and at least 0",
         [](auto& g) {
             g.gate = {3, -1, 0, 0, 0};
         }},
        {"gate.limit", "inf", "finite and at least 0",
         [](auto& g) {
             g.gate = {3, INFINITY, 0, 0, 0};
         }},
        {"gate.limit", "nan", "finite and at least 0",
         [](auto& g) {
             g.gate = {3, NAN, 0, 0, 0};
         }},
        {"gate.slope", "2", "0 without HGEMM_ACTIVATION_SILU",
         [](auto& g) {
             g.gate = {3, 0, 2, 0, 0};
         }},
        {"gate.slope", "-2", "finite and at least 0",
         [](auto& g) {
             g.gate = {3, 0, -2, 0, 0};
         }},
        {"gate.slope", "nan", "finite and at least 0",
         [](auto& g) {
             g.gate = {3, 0, NAN, 0, 0};
         }},
        {"gate.offset", "inf", "must be finite",
         [](auto& g) {
             g.gate = {3, 0, 0, INFINITY, 0};
         }},
        {"gate.offset", "nan", "must be finite",
         [](auto& g) {
             g.gate = {3, 0, 0, NAN, 0};
         }},
        {"c", "equals args->d", "which is narrower", [](auto& g) { g.gate.block = 3; }},
        {"ldd", "2", "at least m / 2 = 3", [](auto& g) { g.gate.block = 1, g.c = g.b, g.ldd = 2; }},
        {"ldc", "5", "at least m = 6", [](auto& g) { g.gate.block = 3, g.c = g.b, g.ldc = 5; }},
        {"ldaux", "5", "at least m = 6", [](auto& g) { g.gate.block = 3, g.c = g.b, g.ldaux = 5; }},
    };
    list.insert(list.end(), more.begin(), more.end());
    return list;
}

// A form's arguments in the order of its prototype, behind the handle.
std::vector<std::string> prototype(Form form)
{
    switch (form) {
    case Form::General: return {"args"};
    case Form::Short: return {"m", "n", "k", "alpha", "A", "lda", "B", "ldb", "beta", "C", "ldc"};
    case Form::Cblas:
        return {"layout", "transa", "transb", "m",   "n",    "k", "alpha",
                "A",      "lda",    "B",      "ldb", "beta", "C", "ldc"};
    case Form::Strided:
        return {"layout",   "transa", "transb", "m",        "n",        "k",
                "alpha",    "A",      "lda",    "stride_a", "B",        "ldb",
                "stride_b", "beta",   "C",      "ldc",      "stride_c", "batch_count"};
    case Form::Batched:
        return {"layout", "transa", "transb", "m",    "n", "k",   "alpha",      "A",
                "lda",    "B",      "ldb",    "beta", "C", "ldc", "batch_count"};
    }
    return {};
}

int position(Form form, const char* name)
{
    if (form == Form::General)
        return 2;
    const std::vector<std::string> names = prototype(form);
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? 0 : static_cast<int>(at - names.begin()) + 2;
}

// What can be wrong in a call of the form.
std::vector<Wrong> wrong_arguments(Form form)
{
    if (form == Form::General)
        return wrong_members();
    std::vector<Wrong> list;
    for (const auto& part : {wrong_scalars(), form == Form::Batched ? wrong_arrays() : wrong_matrices()})
        std::copy_if(part.begin(), part.end(), std::back_inserter(list),
                     [form](const Wrong& wrong) { return position(form, wrong.name) != 0; });
    return list;
}

class Arguments : public testing::TestWithParam<std::tuple<Form, hgemm_type_t>> {
protected:
    Form form() const { return std::get<0>(GetParam()); }
    Operands operands() const { return Operands(form(), std::get<1>(GetParam())); }
    Library library{nullptr};
};

TEST_P(Arguments, valid_call_succeeds)
{
    Operands o = operands();
    EXPECT_EQ(call(form(), library.handle(), o.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(o.untouched());
}

TEST_P(Arguments, each_wrong_one_is_named)
{
    for (const Wrong& wrong : wrong_arguments(form())) {
        Operands o = operands();
        const std::string function = function_name(form(), o.args);
        wrong.change(o.args);
        const hgemm_status_t status = call(form(), library.handle(), o.args);
        const std::string text = hgemm_last_error();
        SCOPED_TRACE(std::string(wrong.name) + " = " + wrong.value + ": " + text);
        EXPECT_EQ(status, HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(hgemm_last_error_argument(), position(form(), wrong.name));
        const std::string name = (form() == Form::General ? "args->" : "") + std::string(wrong.name);
        const std::string where =
            " argument " + std::to_string(position(form(), wrong.name)) + " (" + name + ") ";
        EXPECT_EQ(text.find(function + ":" + where), 0u);
        EXPECT_TRUE(contains(text, wrong.value));
        EXPECT_TRUE(contains(text, wrong.wish));
        EXPECT_TRUE(o.untouched());
    }
}

TEST_P(Arguments, errors_are_not_printed)
{
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    for (const Wrong& wrong : wrong_arguments(form())) {
        Operands o = operands();
        wrong.change(o.args);
        call(form(), library.handle(), o.args);
    }
    EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

// The forms that have their arguments in a prototype, not in a struct.
class OrderedArguments : public Arguments {};

TEST_P(OrderedArguments, first_wrong_one_wins)
{
    const std::vector<Wrong> list = wrong_arguments(form());
    for (const Wrong& first : list)
        for (const Wrong& second : list) {
            const int expected = position(form(), first.name);
            if (expected >= position(form(), second.name))
                continue;
            // A stride can be wrong only in a batch.
            if (contains(first.name, "stride") && second.name == std::string("batch_count"))
                continue;
            Operands o = operands();
            second.change(o.args);
            first.change(o.args);
            EXPECT_EQ(call(form(), library.handle(), o.args), HGEMM_STATUS_INVALID_ARGUMENT);
            EXPECT_EQ(hgemm_last_error_argument(), expected)
                << first.name << " and " << second.name << ": " << hgemm_last_error();
            EXPECT_TRUE(o.untouched());
        }
}

TEST_P(Arguments, handle_comes_first)
{
    Operands o = operands();
    o.args.m = -1;
    EXPECT_EQ(call(form(), nullptr, o.args), HGEMM_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(hgemm_last_error_argument(), 1);
    EXPECT_TRUE(contains(hgemm_last_error(), "argument 1 (handle) is NULL")) << hgemm_last_error();
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS);
    ASSERT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(call(form(), handle, o.args), HGEMM_STATUS_NOT_INITIALIZED);
    EXPECT_TRUE(contains(hgemm_last_error(), "destroyed")) << hgemm_last_error();
    EXPECT_TRUE(o.untouched());
}

// Which pointers may be NULL: the table of the BLAS tradition.
TEST_P(Arguments, unread_operands_may_be_null)
{
    for (const bool no_m : {false, true})
        for (const bool no_n : {false, true})
            for (const bool no_k : {false, true})
                for (const float alpha : {0.0f, 1.0f})
                    for (const float beta : {0.0f, 1.0f})
                        for (const int null : {1, 2, 4, 7}) {
                            Operands o = operands();
                            hgemm_args_t& g = o.args;
                            g.m = no_m ? 0 : m;
                            g.n = no_n ? 0 : n;
                            g.k = no_k ? 0 : k;
                            g.alpha = alpha;
                            g.beta = beta;
                            g.bias_mode = HGEMM_BIAS_NONE;
                            g.bias = nullptr;
                            const bool reads = !no_m && !no_n && !no_k && alpha != 0,
                                       writes = !no_m && !no_n;
                            if (null & 1)
                                g.a = nullptr, g.a_array = nullptr;
                            if (null & 2)
                                g.b = nullptr, g.b_array = nullptr;
                            if (null & 4)
                                g.c = g.d = nullptr, g.c_array = nullptr, g.d_array = nullptr;
                            const bool fine = !((null & 3) && reads) && !((null & 4) && writes);
                            EXPECT_EQ(call(form(), library.handle(), g),
                                      fine ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_INVALID_ARGUMENT)
                                << "m " << g.m << " n " << g.n << " k " << g.k << " alpha " << alpha
                                << " beta " << beta << " null " << null << ": " << hgemm_last_error();
                        }
}

std::string name_of_form(const testing::TestParamInfo<std::tuple<Form, hgemm_type_t>>& info)
{
    const auto [form, type] = info.param;
    const Operands o(form, type);
    return function_name(form, o.args) + "_" + name_of(type);
}

INSTANTIATE_TEST_SUITE_P(, Arguments,
                         testing::Combine(testing::Values(Form::General, Form::Short, Form::Cblas,
                                                          Form::Strided, Form::Batched),
                                          testing::Values(HGEMM_F16, HGEMM_BF16)),
                         name_of_form);
INSTANTIATE_TEST_SUITE_P(, OrderedArguments,
                         testing::Combine(testing::Values(Form::Short, Form::Cblas, Form::Strided,
                                                          Form::Batched),
                                          testing::Values(HGEMM_F16, HGEMM_BF16)),
                         name_of_form);

}  // namespace
}  // namespace hg::test
