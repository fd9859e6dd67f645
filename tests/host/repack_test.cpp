// White-box tests of operands that are copied before they are multiplied.
#include "arch/common/host/repack.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hg {
namespace {

Problem odd_layer(int64_t size)
{
    Problem p = linear_layer(size, size, size);
    p.simplify();
    return p;
}

// "sm90 ab": the backend and the operands that are copied first.
std::string copies(const Problem& p, size_t workspace, const char* kernel = "")
{
    const Chosen choice = choose(h200, p, "", kernel, workspace);
    if (choice.status != ok)
        return "refused";
    std::string text = std::string(choice.plan.backend->name) + " ";
    return text + (choice.plan.repack_a ? "a" : "") + (choice.plan.repack_b ? "b" : "");
}

constexpr size_t mib = size_t{1} << 20;

TEST(Repack, OnlyTheOperandsThatNeedIt)
{
    NEEDS_CUDA_BUILD();
    const auto with = [](auto change) {
        Problem p = linear_layer(1024, 1024, 1024);
        p.a.batch_stride = p.b.batch_stride = p.d.batch_stride = 1024 * 1024;
        change(p);
        return copies(p, 64 * mib);
    };
    void* const shifted = reinterpret_cast<void*>(0x1002);
    const auto array = reinterpret_cast<void* const*>(0x1000);
    EXPECT_EQ(with([](Problem&) {}), "sm90 ");
    EXPECT_EQ(with([](Problem& p) { p.k = 1023; }), "sm90 ");
    EXPECT_EQ(with([](Problem& p) { p.d.ld = 1025; }), "sm90 ");
    EXPECT_EQ(with([](Problem& p) { p.a.row_stride = 1025; }), "sm90 a");
    EXPECT_EQ(with([](Problem& p) { p.b.row_stride = 1025; }), "sm90 b");
    EXPECT_EQ(with([&](Problem& p) { p.a.ptr = p.b.ptr = shifted; }), "sm90 ab");
    EXPECT_EQ(with([](Problem& p) { p.b = {p.b.ptr, nullptr, 1, 1025, 0}; }), "sm90 b");
    EXPECT_EQ(with([](Problem& p) { p.b.k_stride = 3; }), "sm90 b");
    EXPECT_EQ(with([](Problem& p) {
                  p.batch = 4;
                  p.a.batch_stride = 1024 * 1024 + 1;
              }),
              "sm90 a");
    EXPECT_EQ(with([&](Problem& p) {
                  p.batch = 4;
                  p.a.array = p.b.array = array;
                  p.d.array = array;
              }),
              "sm90 ab");
    EXPECT_EQ(with([](Problem& p) { p.a.row_stride = int64_t{1} << 40; }), "sm90 a");
    EXPECT_EQ(with([](Problem& p) { p.k = 0; }), "sm80 ");
}

// With one byte less than the copies need, a direct kernel serves the problem, or none if another one is
// forced.
TEST(Repack, WorkspaceIsExactAndNeverMissed)
{
    NEEDS_CUDA_BUILD();
    const Problem p = odd_layer(1023);
    const size_t bytes = choose(h200, p, "", "", 64 * mib).plan.workspace;
    EXPECT_EQ(bytes, size_t{2} * 1023 * 1024 * 2);
    EXPECT_EQ(copies(p, bytes), "sm90 ab");
    EXPECT_EQ(copies(p, bytes - 1), "sm90 ");
    EXPECT_EQ(choose(h200, p, "", "", bytes - 1).plan.workspace, 0u);
    EXPECT_EQ(copies(p, bytes, "sm90_pingpong_128x128"), "sm90 ab");
    EXPECT_EQ(copies(p, bytes - 1, "sm90_pingpong_128x128"), "refused");
}

TEST(Repack, DefaultWorkspaceServes4095)
{
    NEEDS_CUDA_BUILD();
    const Backend& sm90 = *choose(h200, linear_layer(64, 64, 64)).plan.backend;
    EXPECT_EQ(copies(odd_layer(4095), sm90.default_workspace(h200)), "sm90 ab");
    EXPECT_EQ(copies(odd_layer(8191), sm90.default_workspace(h200)), "sm90 ");
}

// Problems that share an operand share its copy; the sizes of copies do not overflow.
TEST(Repack, SizesOfBatches)
{
    NEEDS_CUDA_BUILD();
    Problem p = odd_layer(100);
    p.batch = 7;
    p.d.batch_stride = 100 * 100;
    const auto bytes = [&] {
        return choose(h200, p, "", "sm90_pingpong_128x128", 64 * mib).plan.workspace;
    };
    const size_t shared = 100 * 128 * 2;
    EXPECT_EQ(bytes(), 2 * shared);
    p.b.batch_stride = 100 * 100 + 3;
    EXPECT_EQ(bytes(), (1 + 7) * shared);
    p.batch = INT32_MAX - 2000;
    p.m = p.n = p.k = INT32_MAX - 2000;
    EXPECT_EQ(copies(p, ~size_t{0}, "sm90_pingpong_128x128"), "refused");
}

// Problems of a batch without a gap between them are copied as one, by fewer tiles.
TEST(Repack, PackedBatchesAreCopiedAsOne)
{
    NEEDS_CUDA_BUILD();
    constexpr int64_t size = 77, batch = 64;
    const auto copied = [](int64_t gap) {
        Problem p = odd_layer(size);
        p.batch = batch;
        p.a.batch_stride = p.b.batch_stride = size * size + gap;
        p.d.batch_stride = size * size;
        const Chosen choice = choose(h200, p, "", "sm90_pingpong_128x128", 64 * mib);
        EXPECT_TRUE(choice.plan.repack_a && choice.plan.repack_b);
        RepackParams params;
        pack_repack(p, choice.plan, reinterpret_cast<void*>(0x10000), params);
        return params.operands[0];
    };
    EXPECT_EQ(copied(0).rows, size * batch);
    EXPECT_EQ(copied(1).rows, size);
    EXPECT_EQ(copied(0).to_stride, copied(1).to_stride);
    EXPECT_LT(2 * copied(0).tiles, 3 * copied(1).tiles);
}

// Direct kernels, where copies and one more launch would take longer than reading the operands as they are.
TEST(Repack, TinyProductsAreNotCopied)
{
    NEEDS_CUDA_BUILD();
    EXPECT_EQ(copies(odd_layer(17), 64 * mib), "sm90 ");
    EXPECT_EQ(copies(odd_layer(255), 64 * mib), "sm90 ");
    EXPECT_EQ(copies(odd_layer(1023), 64 * mib), "sm90 ab");
}

// Few MN-major rows, which TMA would read in boxes of sixteen bytes a K, are copied to K-major rows, if
// there is room.
TEST(Repack, ThinRowsGetLinesAlongK)
{
    NEEDS_CUDA_BUILD();
    const auto thin = [](int64_t rows, int64_t k) {
        Problem p = linear_layer(rows, 4096, k);
        p.a = {p.a.ptr, nullptr, 1, 8, 0};
        return p;
    };
    const char* const kernel = "sm90_splitk_64x8_occ2";
    EXPECT_EQ(copies(thin(8, 4096), 64 * mib, kernel), "sm90 a");
    EXPECT_EQ(choose(h200, thin(8, 4096), "", kernel, 64 * mib).plan.workspace, size_t{8} * 4096 * 2);
    EXPECT_EQ(copies(thin(8, 4096), 0, kernel), "sm90 ");
    EXPECT_EQ(copies(thin(8, 64), 64 * mib, kernel), "sm90 ");
    Problem wide = thin(8, 4096);
    wide.m = wide.a.k_stride = 16;
    EXPECT_EQ(copies(wide, 64 * mib, kernel), "sm90 ");
}

// More rows than that if TMA cannot address them, so that they are copied in any case.
TEST(Repack, UnalignedRowsSideBySideGetLinesAlongK)
{
    NEEDS_CUDA_BUILD();
    constexpr int64_t k = 4096, span = 64;
    const auto bytes = [](int64_t rows) {
        Problem p = linear_layer(rows, 4096, k);
        p.a = {p.a.ptr, nullptr, 1, rows, 0};
        return static_cast<int64_t>(choose(h200, p, "", "sm90_splitk_64x64", 64 * mib).plan.workspace);
    };
    EXPECT_EQ(bytes(9), 9 * k * 2);
    EXPECT_EQ(bytes(47), 47 * k * 2);
    EXPECT_EQ(bytes(49), k * span * 2);
}

TEST(Repack, IsPrinted)
{
    NEEDS_CUDA_BUILD();
    Problem p = odd_layer(1023);
    char text[512];
    choose(h200, p, "", "", 64 * mib).plan.print(text, sizeof text);
    EXPECT_NE(std::string(text).find(" repack=ab "), std::string::npos) << text;
    p.b.row_stride = 1024;
    choose(h200, p, "", "", 64 * mib).plan.print(text, sizeof text);
    EXPECT_NE(std::string(text).find(" repack=a "), std::string::npos) << text;
    choose(h200, p).plan.print(text, sizeof text);
    EXPECT_EQ(std::string(text).find("repack"), std::string::npos) << text;
}

}  // namespace
}  // namespace hg
