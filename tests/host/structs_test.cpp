// The structs that callers pass: their defaults, and sizes that tell the caller's version or are nonsense.
#include "../library.hpp"
#include "message.hpp"
#include "src/tools/support/memory.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hg::test {
namespace {

class StructSizes : public testing::Test {
protected:
    // Structs that lie directly before memory that cannot be read.
    template <typename Struct>
    Struct* place(size_t count = 1)
    {
        block_ = Block(memory_, count * sizeof(Struct), Guard::Fence);
        return block_.get<Struct>();
    }
    Library library{nullptr};

private:
    HostMemory memory_;
    Block block_;
};

// What hgemm_args_t had in version 0.1.
constexpr size_t args_of_0_1 = 280;
static_assert(args_of_0_1 == offsetof(hgemm_args_t, uplo));
// And before it had gates.
constexpr size_t args_without_gate = 288;
static_assert(args_without_gate == offsetof(hgemm_args_t, gate));

// What uninitialised memory may hold.
const size_t nonsense[] = {0,    1,    8,    args_of_0_1 - 8, args_of_0_1 + 4, 1023,
                           1032, 4096, 4100, 100'000'000'000, SIZE_MAX - 7,    SIZE_MAX};

TEST_F(StructSizes, that_are_nonsense_are_refused_unread)
{
    auto* args = place<hgemm_args_t>();
    hgemm_args_init(args, sizeof *args);
    for (const size_t size : nonsense) {
        args->size = size;
        const std::string text = "argument 2 (args->size) is " + std::to_string(size) +
                                 ", must be a multiple of 8 from " + std::to_string(args_of_0_1) +
                                 " to 1024: use hgemm_args_init";
        size_t bytes;
        char line[64];
        expect_invalid(hgemm_gemm_ex(library.handle(), args), 2, "hgemm_gemm_ex: " + text);
        expect_invalid(hgemm_workspace_size(library.handle(), args, &bytes), 2, text);
        expect_invalid(hgemm_explain(library.handle(), args, line, sizeof line), 2, text);
    }
    args->size = sizeof *args;
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), args), HGEMM_STATUS_INVALID_ARGUMENT) << "m = 0, lda = 0";
    EXPECT_TRUE(contains(hgemm_last_error(), "args->lda")) << hgemm_last_error();
}

TEST_F(StructSizes, of_groups_that_are_nonsense_are_refused_unread)
{
    auto* grouped = place<hgemm_grouped_args_t>();
    hgemm_grouped_args_init(grouped, sizeof *grouped);
    for (const size_t size : nonsense) {
        if (size >= offsetof(hgemm_grouped_args_t, ends) && size <= 1024 && size % 8 == 0)
            continue;
        grouped->size = size;
        expect_invalid(hgemm_grouped_ex(library.handle(), grouped), 2,
                       "argument 2 (args->size) is " + std::to_string(size) +
                           ", must be a multiple of 8 from 160 to 1024: use hgemm_grouped_args_init");
    }
}

// The first entry's size is the distance to the second.
TEST_F(StructSizes, of_entries_that_are_nonsense_are_refused_unread)
{
    auto* problems = place<hgemm_args_t>(2);
    hgemm_args_init(&problems[0], sizeof *problems);
    hgemm_args_init(&problems[1], sizeof *problems);
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.group_count = 2;
    grouped.problems = problems;
    for (const size_t size : nonsense) {
        problems[0].size = problems[1].size = size;
        expect_invalid(hgemm_grouped_ex(library.handle(), &grouped), 2,
                       "argument 2 (args->problems[0].size) is " + std::to_string(size) +
                           ", must be a multiple of 8 from " + std::to_string(args_of_0_1) +
                           " to 1024: use hgemm_args_init");
    }
}

TEST_F(StructSizes, misaligned_structs_are_refused)
{
    alignas(8) char bytes[sizeof(hgemm_args_t) + 8] = {};
    const auto* args = reinterpret_cast<const hgemm_args_t*>(bytes + 4);
    expect_invalid(hgemm_gemm_ex(library.handle(), args), 2, "(args) is 0x");
    EXPECT_TRUE(contains(hgemm_last_error(), "must be aligned to 8 bytes")) << hgemm_last_error();
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.group_count = 1;
    grouped.problems = args;
    expect_invalid(hgemm_grouped_ex(library.handle(), &grouped), 2, "(args->problems) is 0x");
}

TEST(Structs, are_filled_as_far_as_the_caller_has_them)
{
    hgemm_args_init(nullptr, sizeof(hgemm_args_t));
    hgemm_grouped_args_init(nullptr, sizeof(hgemm_grouped_args_t));
    hgemm_args_t args;
    std::memset(&args, 0xff, sizeof args);
    hgemm_args_init(&args, sizeof args);
    hgemm_args_t expected;
    std::memset(&expected, 0, sizeof expected);
    expected.size = sizeof expected;
    expected.layout = HGEMM_COL_MAJOR;
    expected.transa = expected.transb = HGEMM_NO_TRANS;
    expected.type_ab = expected.type_c = expected.type_d = HGEMM_F16;
    expected.alpha = 1;
    expected.batch_count = 1;
    args.bias_type = expected.bias_type;  // free, since there is no bias
    EXPECT_EQ(std::memcmp(&args, &expected, sizeof args), 0);

    // An older caller's shorter struct is not overrun, a newer caller's longer one is cleared to its end.
    unsigned char raw[sizeof(hgemm_args_t) + 64];
    for (const size_t size : {size_t{40}, sizeof raw}) {
        std::memset(raw, 0xff, sizeof raw);
        hgemm_args_init(reinterpret_cast<hgemm_args_t*>(raw), size);
        for (size_t i = sizeof(hgemm_args_t); i < size; ++i)
            EXPECT_EQ(raw[i], 0);
        for (size_t i = size; i < sizeof raw; ++i)
            EXPECT_EQ(raw[i], 0xff);
    }
}

TEST_F(StructSizes, of_a_newer_caller_are_served)
{
    struct Newer {
        hgemm_args_t args;
        uint64_t added;
    } newer;
    std::vector<uint16_t> matrix(3 * 256, 0x3c00);
    hgemm_args_init(&newer.args, sizeof newer);
    newer.args.m = newer.args.n = newer.args.k = newer.args.lda = newer.args.ldb = newer.args.ldd = 16;
    newer.args.a = &matrix[0];
    newer.args.b = &matrix[256];
    newer.args.d = &matrix[512];
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), &newer.args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    newer.added = 1;
    expect_invalid(hgemm_gemm_ex(library.handle(), &newer.args), 2, "args->size");
    expect_invalid(hgemm_gemm_ex(library.handle(), nullptr), 2, "(args) is NULL");
}

// Two products by hgemm_gemm_ex() and by hgemm_grouped_ex(). What lies behind `flags` was padding, and may
// hold anything; so was what lies behind `uplo`.
class OlderCallers : public StructSizes, public testing::WithParamInterface<size_t> {};

TEST_P(OlderCallers, are_served)
{
    const size_t size = GetParam(), words = size / sizeof(uint64_t);
    std::vector<uint16_t> matrix(4 * 256, 0x3c00);
    hgemm_args_t now;
    std::memset(&now, 0xff, sizeof now);
    hgemm_args_init(&now, size);
    now.unused = now.unused_too = 0xffffffff;
    now.m = now.n = now.k = now.lda = now.ldb = now.ldd = 16;
    now.a = &matrix[0];
    now.b = &matrix[256];
    auto* const older = place<uint64_t>(2 * words);
    for (size_t i = 0; i < 2; ++i) {
        now.d = &matrix[512 + i * 256];
        std::memcpy(older + i * words, &now, size);
    }
    const auto* problems = reinterpret_cast<const hgemm_args_t*>(older);
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), problems), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(matrix[512], 0x4c00);  // 16
    matrix[512] = 0;
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.group_count = 2;
    grouped.problems = problems;
    EXPECT_EQ(hgemm_grouped_ex(library.handle(), &grouped), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(matrix[512], 0x4c00);
    EXPECT_EQ(matrix[1023], 0x4c00);
}

INSTANTIATE_TEST_SUITE_P(, OlderCallers, testing::Values(args_of_0_1, args_without_gate));

// hgemm_grouped_args_t had 160 bytes in version 0.1, 200 before it had gates, 232 before it had a bias, and
// 256 before it had aux.
class OlderCallersOfGroups : public StructSizes, public testing::WithParamInterface<size_t> {};

TEST_P(OlderCallersOfGroups, are_served)
{
    const size_t size = GetParam();
    std::vector<uint16_t> matrix(3 * 256, 0x3c00);
    const int64_t offsets[] = {0, 16};
    hgemm_grouped_args_t now;
    hgemm_grouped_args_init(&now, size);
    now.group_count = 1;
    now.m = now.n = now.k = now.lda = now.ldb = now.ldd = 16;
    now.a = &matrix[0];
    now.b = &matrix[256];
    now.d = &matrix[512];
    now.offsets = offsets;
    auto* const older = place<uint64_t>(size / sizeof(uint64_t));
    std::memcpy(older, &now, size);
    const auto* args = reinterpret_cast<const hgemm_grouped_args_t*>(older);
    EXPECT_EQ(hgemm_grouped_ex(library.handle(), args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(matrix[512], 0x4c00);  // 16
    older[0] = 152;
    expect_invalid(hgemm_grouped_ex(library.handle(), args), 2, "is 152, must be a multiple of 8 from 160");
}

INSTANTIATE_TEST_SUITE_P(, OlderCallersOfGroups,
                         testing::Values(offsetof(hgemm_grouped_args_t, ends),
                                         offsetof(hgemm_grouped_args_t, activation),
                                         offsetof(hgemm_grouped_args_t, bias),
                                         offsetof(hgemm_grouped_args_t, aux)));
static_assert(offsetof(hgemm_grouped_args_t, ends) == 160 &&
              offsetof(hgemm_grouped_args_t, activation) == 200 &&
              offsetof(hgemm_grouped_args_t, bias) == 232 && offsetof(hgemm_grouped_args_t, aux) == 256);

// hgemm_rows_args_t had 104 bytes before it had a B, which hgemm_dot_rows() alone reads.
TEST_F(StructSizes, of_older_callers_of_rows_are_served)
{
    constexpr size_t size = 104;
    static_assert(size == offsetof(hgemm_rows_args_t, b));
    uint16_t from[] = {1, 2, 3, 4}, to[4] = {};
    const int32_t row_of_choice[] = {1, 0};
    hgemm_rows_args_t now;
    hgemm_rows_args_init(&now, size);
    now.tokens = now.columns = now.lda = now.ldd = 2;
    now.choices = 1;
    now.row_of_choice = row_of_choice;
    now.a = from;
    now.d = to;
    auto* const older = place<uint64_t>(size / sizeof(uint64_t));
    std::memcpy(older, &now, size);
    const auto* args = reinterpret_cast<const hgemm_rows_args_t*>(older);
    EXPECT_EQ(hgemm_gather_rows(library.handle(), args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(std::vector<uint16_t>(to, to + 4), std::vector<uint16_t>({3, 4, 1, 2}));
    EXPECT_EQ(hgemm_combine_rows(library.handle(), args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    expect_invalid(hgemm_dot_rows(library.handle(), args), 2, "(args->type_b) is 0, must be 1 (F16)");
}

}  // namespace
}  // namespace hg::test
