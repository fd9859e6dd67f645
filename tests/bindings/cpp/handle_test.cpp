// The C++ layer on the host backend.
#include "hgemm.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace {

using libhgemm::Bfloat16;
using libhgemm::Gemm;
using libhgemm::Half;
using libhgemm::Handle;
using libhgemm::Matrix;

static_assert(!std::is_copy_constructible_v<Handle> && std::is_nothrow_move_constructible_v<Handle>);

Handle make_host()
{
    auto handle = Handle::create_on(HGEMM_DEVICE_HOST);
    EXPECT_TRUE(handle) << handle.error().message;
    return *std::move(handle);
}

constexpr Half one{0x3c00}, two{0x4000};

TEST(Cpp, products_of_halves_and_floats)
{
    Handle handle = make_host();
    // [1 2; 1 2; 1 2] * [1 1; 2 2] = 5 everywhere, and 2 * 5 - 1.
    const std::vector<Half> a = {one, two, one, two, one, two}, b = {one, one, two, two};
    std::vector<float> c(6, 1.0f);
    const Gemm gemm{.m = 3, .n = 2, .k = 2, .alpha = 2, .beta = -1};
    const auto done = handle.multiply<Half, float>(gemm, {a, 2}, {b, 2}, {c, 2});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(c, std::vector<float>(6, 9.0f));
}

TEST(Cpp, bfloat16_column_major_and_transposed)
{
    Handle handle = make_host();
    const std::vector<Bfloat16> a = {{0x3f80}, {0x4000}, {0x4040}}, b = {{0x3f80}, {0x4000}};  // 1 2 3, 1 2
    std::vector<Bfloat16> c(6);
    const Gemm gemm{.m = 3, .n = 2, .k = 1, .layout = HGEMM_COL_MAJOR, .transa = HGEMM_TRANS};
    ASSERT_TRUE((handle.multiply<Bfloat16, Bfloat16>(gemm, {a, 1}, {b, 1}, {c, 3})));
    const std::vector<uint16_t> expected = {0x3f80, 0x4000, 0x4040,
                                            0x4000, 0x4080, 0x40c0};  // 1 2 3, 2 4 6
    for (size_t i = 0; i < 6; ++i)
        EXPECT_EQ(c[i].bits, expected[i]) << i;
}

TEST(Cpp, spans_that_are_too_short_are_refused)
{
    Handle handle = make_host();
    const std::vector<Half> data(19, one);
    std::vector<float> c(19, 7.0f);
    const std::span<const Half> all(data);
    const std::span<float> out(c);
    const Gemm gemm{.m = 4, .n = 4, .k = 4};
    const auto refused = [&](const libhgemm::Status& status, const char* text) {
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().status, HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(status.error().message, text);
        EXPECT_EQ(c, std::vector<float>(19, 7.0f));
    };
    refused(handle.multiply<Half, float>(gemm, {all.first(18), 5}, {all, 5}, {out, 5}),
            "A has 18 elements, too few for 4 lines of 4, 5 apart");
    refused(handle.multiply<Half, float>(gemm, {all, 5}, {all.first(3), 5}, {out, 5}),
            "B has 3 elements, too few for 4 lines of 4, 5 apart");
    refused(handle.multiply<Half, float>(gemm, {all, 5}, {all, 5}, {out.first(18), 5}),
            "C has 18 elements, too few for 4 lines of 4, 5 apart");
    const Gemm huge{.m = int64_t{1} << 62, .n = 4, .k = 4};
    EXPECT_FALSE((handle.multiply<Half, float>(huge, {all, 5}, {all, 5}, {out, 5})));
    EXPECT_TRUE((handle.multiply<Half, float>(gemm, {all, 5}, {all, 5}, {out, 5})));
    EXPECT_EQ(c[18], 4.0f);
    EXPECT_EQ(c[4], 7.0f) << "between the lines";
}

TEST(Cpp, halves_of_symmetric_results)
{
    Handle handle = make_host();
    // [1 2; 1 1; 2 1] times its transpose, which is [5 3 4; 3 2 3; 4 3 5], and row-major with a gap of one.
    const std::vector<Half> a = {one, two, one, one, two, one}, transposed = {one, one, two, two, one, one};
    const auto expect = [&](const libhgemm::Syrk& syrk, const std::vector<float>& expected) {
        std::vector<float> c(11, 7.0f);
        const auto& stored = syrk.trans == HGEMM_NO_TRANS ? a : transposed;
        const int64_t lda = syrk.trans == HGEMM_NO_TRANS ? 2 : 3;
        const auto done = handle.multiply_symmetric<Half, float>(syrk, {stored, lda}, {c, 4});
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(c, expected);
    };
    expect({.n = 3, .k = 2}, {5, 3, 4, 7, 3, 2, 3, 7, 4, 3, 5});
    expect({.n = 3, .k = 2, .uplo = HGEMM_LOWER}, {5, 7, 7, 7, 3, 2, 7, 7, 4, 3, 5});
    expect({.n = 3, .k = 2, .uplo = HGEMM_UPPER, .trans = HGEMM_TRANS}, {5, 3, 4, 7, 7, 2, 3, 7, 7, 7, 5});
    expect({.n = 3, .k = 2, .uplo = HGEMM_UPPER, .alpha = 2, .beta = -1},
           {3, -1, 1, 7, 7, -3, -1, 7, 7, 7, 3});

    std::vector<float> c(8, 7.0f);
    const auto status = handle.multiply_symmetric<Half, float>({.n = 3, .k = 2}, {a, 2}, {c, 3});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "C has 8 elements, too few for 3 lines of 3, 3 apart");
    EXPECT_EQ(c, std::vector<float>(8, 7.0f));
}

// [2 1; 1 2] * [1 2; 2 1] = [4 5; 5 4]: two symmetric matrices that commute.
TEST(Cpp, products_that_are_known_to_be_symmetric)
{
    Handle handle = make_host();
    const std::vector<Half> a = {two, one, one, two}, b = {one, two, two, one};
    std::vector<float> c(4, 7.0f);
    Gemm gemm{.m = 2, .n = 2, .k = 2, .uplo = HGEMM_UPPER};
    const auto done = handle.multiply<Half, float>(gemm, {a, 2}, {b, 2}, {c, 2});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(c, (std::vector<float>{4, 5, 7, 4}));
    gemm.m = 1;
    const auto status = handle.multiply<Half, float>(gemm, {a, 2}, {b, 2}, {c, 2});
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("must equal args->n = 2"), std::string::npos);
}

// [1 2; 2 1] * [1 1; 0 1] = [1 3; 2 3], of which one column, or one row, gates the other.
TEST(Cpp, gated_results)
{
    Handle handle = make_host();
    const std::vector<Half> a = {one, two, two, one}, b = {one, one, {0}, one};
    Gemm gemm{.m = 2, .n = 2, .k = 2, .activation = HGEMM_ACTIVATION_RELU, .gate = {.block = 1}};
    std::vector<float> c(3, 7.0f);
    const auto rows = handle.multiply<Half, float>(gemm, {a, 2}, {b, 2}, {c, 2});
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(c, (std::vector<float>{3, 7, 6}));
    // The same numbers are the transposes: [1 0; 1 1] * [1 2; 2 1] = [1 2; 3 3].
    gemm.layout = HGEMM_COL_MAJOR;
    gemm.gate.limit = 2;
    gemm.gate.offset = 1;
    const auto columns = handle.multiply<Half, float>(gemm, {b, 2}, {a, 2}, {c, 1});
    ASSERT_TRUE(columns) << columns.error().message;
    EXPECT_EQ(c, (std::vector<float>{3, 6, 6}));

    const auto status = handle.multiply<Half, float>(gemm, {b, 2}, {a, 2}, {std::span(c).first(1), 1});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "C has 1 elements, too few for 2 lines of 1, 1 apart");
    EXPECT_EQ(c, (std::vector<float>{3, 6, 6}));
}

TEST(Cpp, operands_that_are_not_read_may_be_empty)
{
    Handle handle = make_host();
    std::vector<float> c(4, 3.0f);
    const Gemm gemm{.m = 2, .n = 2, .k = 5, .alpha = 0, .beta = 2};
    ASSERT_TRUE((handle.multiply<Half, float>(gemm, {{}, 5}, {{}, 2}, {c, 2})));
    EXPECT_EQ(c, std::vector<float>(4, 6.0f));
}

TEST(Cpp, errors_of_the_library_keep_their_text)
{
    Handle handle = make_host();
    const std::vector<Half> data(16, one);
    std::vector<float> c(16);
    const auto status =
        handle.multiply<Half, float>({.m = 2, .n = 2, .k = 4}, {data, 3}, {data, 2}, {c, 2});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().status, HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(status.error().message.find("is 3, must be at least k = 4"), std::string::npos);
    const auto none = Handle::create_on(1000);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().status, HGEMM_STATUS_NO_DEVICE);
    EXPECT_EQ(none.error().argument, 2);
}

TEST(Cpp, handles_move)
{
    Handle first = make_host();
    const hgemm_handle_t raw = first.get();
    Handle second = std::move(first);
    EXPECT_EQ(second.get(), raw);
    EXPECT_EQ(first.get(), nullptr);
    EXPECT_EQ(first.backend(), "");
    first = make_host();
    std::swap(first, second);
    EXPECT_EQ(first.get(), raw);
    EXPECT_EQ(first.backend(), "host");
}

TEST(Cpp, settings)
{
    Handle handle = make_host();
    EXPECT_TRUE(handle.set_stream(nullptr));
    EXPECT_EQ(*handle.stream(), nullptr);
    EXPECT_TRUE(handle.set_workspace({}));
    EXPECT_TRUE(handle.set_mode(HGEMM_MODE_DEFAULT));
    EXPECT_EQ(*handle.mode(), HGEMM_MODE_DEFAULT);
    EXPECT_TRUE(handle.set_sm_count(1));
    EXPECT_FALSE(handle.set_sm_count(-1));
    EXPECT_EQ(*handle.sm_count(), 1);
    EXPECT_EQ(*handle.device(), HGEMM_DEVICE_HOST);
    alignas(256) static std::byte memory[512];
    EXPECT_TRUE(handle.set_workspace(memory));
    EXPECT_EQ(handle.workspace()->data(), memory);
    EXPECT_EQ(handle.workspace()->size(), sizeof memory);
    EXPECT_TRUE(handle.set_workspace({}));
    EXPECT_NE(handle.workspace()->data(), memory);
    EXPECT_TRUE(Handle::create());
    EXPECT_TRUE(Handle::create_sized(HGEMM_DEVICE_HOST, 1 << 20));
    EXPECT_FALSE(Handle::create_sized(-3, 0));
}

TEST(Cpp, general_and_grouped_forms)
{
    Handle handle = make_host();
    const std::vector<Half> a = {one, two}, b = {two};
    std::vector<float> d(2);
    hgemm_args_t args = libhgemm::make_args();
    args.type_c = args.type_d = HGEMM_F32;
    args.m = args.lda = args.ldd = 2;
    args.n = args.k = args.ldb = 1;
    args.a = a.data();
    args.b = b.data();
    args.d = d.data();
    EXPECT_NE(handle.explain(args)->find("host"), std::string::npos);
    EXPECT_TRUE(handle.workspace_size(args));
    EXPECT_EQ(handle.tune(args)->candidates, 1) << "on the host";
    hgemm_tune_options_t options = libhgemm::make_tune_options();
    options.max_rounds = 1;
    EXPECT_EQ(handle.tune(args, options).error().argument, 3);
    ASSERT_TRUE(handle.run(args));
    EXPECT_EQ(d, (std::vector<float>{2, 4}));

    hgemm_grouped_args_t grouped = libhgemm::make_grouped_args();
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.group_count = 1;
    args.alpha = 3;
    grouped.problems = &args;
    ASSERT_TRUE(handle.run(grouped));
    EXPECT_EQ(d, (std::vector<float>{6, 12}));
}

}  // namespace
