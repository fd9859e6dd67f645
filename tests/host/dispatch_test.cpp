// White-box tests of dispatch: no GPU is needed, a Device is a plain struct.
#include "devices.hpp"
#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace hg {
namespace {

TEST(Dispatch, EachDeviceGetsItsBackends)
{
    NEEDS_CUDA_BUILD();
    const Problem p = linear_layer(4096, 4096, 4096);
    EXPECT_EQ(choose(b200, p).plan.backend->name, std::string("sm100"));
    for (const int relative : {103, 107, 110})
        EXPECT_EQ(choose(gpu(relative, 148, 227), p).plan.backend->name, std::string("sm100")) << relative;
    EXPECT_EQ(choose(h200, p).plan.backend->name, std::string("sm90"));
    EXPECT_EQ(choose(a100, p).plan.backend->name, std::string("sm80"));
    EXPECT_EQ(choose(a10, p).plan.backend->name, std::string("sm80"));
    EXPECT_EQ(choose(rtx5090, p).plan.backend->name, std::string("sm120"));
}

// A contiguous column of D is stored as a row: A and B, m and n, the bias's rows and columns change places.
TEST(Problem, ColumnsBecomeRows)
{
    const auto simplified = [](auto change) {
        Problem p = linear_layer(1000, 1, 64);
        change(p);
        p.simplify();
        return p;
    };
    const Problem row = simplified([](Problem& p) {
        p.c = p.aux = p.d;
        p.bias = {reinterpret_cast<void*>(0x3000), 0, Type::F16, BiasAlong::Rows};
    });
    EXPECT_EQ(row.m, 1);
    EXPECT_EQ(row.n, 1000);
    EXPECT_EQ(row.a.ptr, linear_layer(1000, 1, 64).b.ptr);
    EXPECT_EQ(row.b, linear_layer(1000, 1, 64).a);
    EXPECT_EQ(row.bias.along, BiasAlong::Columns);
    EXPECT_EQ(row.d.ld, 1000);
    for (const Problem& column : {simplified([](Problem& p) { p.d.ld = 2; }), simplified([](Problem& p) {
                                      p.c = p.d;
                                      p.c.ld = 3;
                                  }),
                                  simplified([](Problem& p) {
                                      p.aux = p.d;
                                      p.aux.ld = -1;
                                  })})
        EXPECT_EQ(column.m, 1000);
    EXPECT_EQ(simplified([](Problem& p) { p.bias.along = BiasAlong::Columns; }).bias.along,
              BiasAlong::Rows);
}

TEST(Dispatch, HostServesTheHostAlone)
{
    const Problem p = linear_layer(64, 64, 64);
    EXPECT_EQ(choose(host(), p).kernel, "host_packed");
    EXPECT_EQ(choose(h200, p, "host").status, HGEMM_STATUS_NOT_SUPPORTED);
}

TEST(Dispatch, DeviceBelow80IsRefusedWithItsCapability)
{
    EXPECT_EQ(choose(turing, linear_layer(64, 64, 64)).status, HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("7.5"), std::string::npos) << hgemm_last_error();
}

TEST(Dispatch, UnknownNamesAreRefusedWithTheKnownOnes)
{
    const Problem p = linear_layer(64, 64, 64);
    EXPECT_EQ(choose(host(), p, "sm30").status, HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("known: "), std::string::npos);
    EXPECT_EQ(choose(host(), p, "", "?").status, HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("host_blocked"), std::string::npos);
}

TEST(Dispatch, ForcedBackendKeepsTheGeneralPathBehindIt)
{
    NEEDS_CUDA_BUILD();
    Problem p = linear_layer(4096, 4096, 4096);
    EXPECT_EQ(choose(h200, p, "sm80").plan.backend->name, std::string("sm80"));
    EXPECT_EQ(choose(h200, p, "sm90").plan.backend->name, std::string("sm90"));
    EXPECT_EQ(choose(h200, p, "sm120").plan.backend->name, std::string("sm120"));
    p.a.k_stride = p.b.k_stride = 2;
    EXPECT_EQ(choose(h200, p, "sm90").kernel, "sm80_any_64x64x32");
    EXPECT_EQ(choose(h200, p, "sm120").kernel, "sm80_any_64x64x32");
    EXPECT_EQ(choose(rtx5090, p).kernel, "sm80_any_64x64x32");
    EXPECT_EQ(choose(a100, p, "sm90").status, HGEMM_STATUS_NOT_SUPPORTED);
}

// On a Hopper sm120 is there for those who name it.
TEST(Dispatch, BackendThatStandsAsideServesWhereItIsNamed)
{
    NEEDS_CUDA_BUILD();
    const auto candidates = [](const Device& device, const char* backend, const char* kernel) {
        Options options{};
        std::strcpy(options.backend, backend);
        std::strcpy(options.kernel, kernel);
        const Backend* found[max_backends];
        int count = 0;
        std::string names;
        EXPECT_EQ(find_backends(device, options, found, count), ok);
        for (int i = 0; i < count; ++i)
            names += std::string(found[i]->name) + ' ';
        return names;
    };
    EXPECT_EQ(candidates(h200, "", ""), "sm90 sm80 ");
    EXPECT_EQ(candidates(h200, "sm120", ""), "sm120 sm80 ");
    EXPECT_EQ(candidates(h200, "", "sm120_64x64x64_s3"), "sm90 sm120 sm80 ");
    EXPECT_EQ(candidates(rtx5090, "", ""), "sm120 sm80 ");
    EXPECT_EQ(candidates(rtx5090, "sm80", ""), "sm80 ");
}

TEST(Dispatch, ForcedKernelRunsOrSaysWhyNot)
{
    NEEDS_CUDA_BUILD();
    Problem p = linear_layer(4096, 4096, 4096);
    for (const char* kernel : {"sm90_pingpong_128x128", "sm120_64x64x64_s3", "sm80_128x128x64_s3",
                               "sm80_unaligned_64x64x64", "sm80_any_64x64x32"}) {
        const Chosen choice = choose(h200, p, "", kernel);
        EXPECT_EQ(choice.kernel, kernel);
        EXPECT_EQ(choice.plan.why, Why::Forced);
    }
    p.b.ptr = reinterpret_cast<void*>(0x2002);
    EXPECT_EQ(choose(h200, p, "", "sm90_pingpong_128x128").status, HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("16-byte alignment"), std::string::npos)
        << hgemm_last_error();
}

// Without a workspace, operands that neither TMA nor 16-byte copies can address are left to direct kernels
// if one of them has a contiguous dimension, else to the general kernels. Other operands are not.
TEST(Dispatch, LegalityOfEachOperand)
{
    NEEDS_CUDA_BUILD();
    const auto kernel = [](auto change) {
        Problem p = linear_layer(512, 512, 512);
        change(p);
        const std::string kernel = choose(h200, p).kernel;
        if (kernel.starts_with("sm90_direct") || kernel.starts_with("sm80_any"))
            return kernel.substr(5, kernel[2] == '9' ? 6 : 3);
        return kernel.substr(0, 4);
    };
    EXPECT_EQ(kernel([](Problem&) {}), "sm90");
    EXPECT_EQ(kernel([](Problem& p) { p.a = {p.a.ptr, nullptr, 1, 512, 0, 0}; }), "sm90");
    EXPECT_EQ(kernel([](Problem& p) { p.d.ld = 513; }), "sm90");
    EXPECT_EQ(kernel([](Problem& p) { p.a.row_stride = 513; }), "direct");
    EXPECT_EQ(kernel([](Problem& p) { p.b.k_stride = 2; }), "direct");
    EXPECT_EQ(kernel([](Problem& p) { p.a.k_stride = p.b.k_stride = 2; }), "any");
    EXPECT_EQ(kernel([](Problem& p) { p.a.ptr = reinterpret_cast<void*>(0x1008); }), "direct");
    EXPECT_EQ(kernel([](Problem& p) { p.k = 0; }), "any");
    EXPECT_EQ(kernel([](Problem& p) {
                  p.batch = 2;
                  p.a.batch_stride = 12;
              }),
              "direct");
    EXPECT_EQ(kernel([](Problem& p) {
                  p.batch = 2;
                  p.a.batch_stride = -8 * 512 * 512;
              }),
              "sm80");
    EXPECT_EQ(kernel([](Problem& p) { p.m = int64_t{1} << 31; }), "sm80");
}

// A direct kernel needs one contiguous dimension of the large operand, and some kernels a certain one.
TEST(Dispatch, LegalityOfDirectKernels)
{
    NEEDS_CUDA_BUILD();
    const auto serves = [](auto change, const char* kernel = "sm90_direct_64x16",
                           Mode mode = Mode::Default) {
        Problem p = linear_layer(16, 1000, 600);
        change(p);
        Options options{};
        std::strcpy(options.kernel, kernel);
        options.mode = mode;
        Plan plan{};
        return choose(h200, p).plan.backend->choose(p, h200, options, plan) && !plan.workspace;
    };
    const auto nothing = [](Problem&) {};
    EXPECT_TRUE(serves(nothing));
    EXPECT_TRUE(serves([](Problem& p) { p.a.k_stride = 3; }));
    EXPECT_TRUE(serves([](Problem& p) { p.b = {p.b.ptr, nullptr, 1, 1001, 0, 0}; }));
    EXPECT_FALSE(serves([](Problem& p) { p.a.k_stride = p.b.k_stride = 3; }));
    EXPECT_FALSE(serves([](Problem& p) { p.k = 0; }));
    EXPECT_FALSE(serves([](Problem& p) { p.n = int64_t{1} << 31; }));
    EXPECT_FALSE(serves(nothing, "sm90_direct_64x16", Mode::BatchInvariant));
    // Tiles of 32 rows need a K-major operand.
    const auto along_rows = [](Problem& p) {
        p.a = {p.a.ptr, nullptr, 1, 1001, 0, 0};
        p.b = {p.b.ptr, nullptr, 1, 1001, 0, 0};
    };
    EXPECT_TRUE(serves(along_rows));
    EXPECT_FALSE(serves(along_rows, "sm90_direct_32x16"));
    // gemv kernels need an M-major A.
    EXPECT_TRUE(serves(along_rows, "sm90_gemv_256x4"));
    EXPECT_FALSE(serves(nothing, "sm90_gemv_256x4"));
    // Offsets in a tile have 31 bits, and vectors may reach into the next row.
    EXPECT_FALSE(serves([](Problem& p) { p.a.row_stride = p.b.row_stride = int64_t{1} << 24; }));
    EXPECT_FALSE(serves([](Problem& p) {
        p.a = {p.a.ptr, nullptr, 3, 3, 0, 0};
        p.b = {p.b.ptr, nullptr, 1, 8, 0, 0};
    }));
}

// sm100 copies nothing; CTA pairs need two SMs; only static schedules keep to a limit of SMs.
TEST(Dispatch, LegalityOfSm100)
{
    NEEDS_CUDA_BUILD();
    const auto kernel = [](auto change) {
        Problem p = linear_layer(512, 512, 512);
        change(p);
        return choose(b200, p, "", "", size_t{64} << 20).kernel.substr(0, 6);
    };
    EXPECT_EQ(kernel([](Problem&) {}), "sm100_");
    EXPECT_EQ(kernel([](Problem& p) { p.b = {p.b.ptr, nullptr, 1, 512, 0, 0}; }), "sm100_");
    EXPECT_EQ(kernel([](Problem& p) { p.d.ld = 513; }), "sm100_");
    EXPECT_EQ(kernel([](Problem& p) { p.a.row_stride = 513; }), "sm80_u");
    EXPECT_EQ(kernel([](Problem& p) { p.k = 0; }), "sm80_a");
    EXPECT_EQ(kernel([](Problem& p) { p.m = int64_t{1} << 31; }), "sm80_1");
    const Problem p = linear_layer(4096, 4096, 4096);
    EXPECT_EQ(choose(gpu(100, 1, 227), p, "", "sm100_2cta_256x256_static").status,
              HGEMM_STATUS_NOT_SUPPORTED);
    Options options{};
    options.sm_limit = 10;
    Plan plan{};
    plan.backend = choose(b200, p).plan.backend;
    ASSERT_TRUE(plan.backend->choose(p, b200, options, plan));
    EXPECT_LE(plan.grid, 10);
    options.sm_limit = 0;
    options.mode = Mode::BatchInvariant;
    const Problem deep = linear_layer(16, 128, 16384);
    EXPECT_GT(choose(b200, deep).plan.split, 1);
    ASSERT_TRUE(plan.backend->choose(deep, b200, options, plan));
    EXPECT_EQ(plan.split, 1);
}

TEST(Dispatch, PlanIsPure)
{
    const Problem p = linear_layer(1000, 1000, 1000);
    char first[512], second[512];
    choose(host(), p).plan.print(first, sizeof first);
    choose(host(), p).plan.print(second, sizeof second);
    EXPECT_STREQ(first, second);
}

// One long wave of CTAs that fill an SM runs with pdl=late, everything else with pdl=early, where the model
// decides, as it does for batches.
TEST(Dispatch, NextKernelMayStart)
{
    NEEDS_CUDA_BUILD();
    const auto plan = [](int64_t m, int64_t n, int64_t k, const char* kernel) {
        Problem p = linear_layer(m, n, k);
        p.batch = 2;
        return choose(h200, p, "", kernel).plan;
    };
    EXPECT_EQ(plan(128, 4096, 512, "sm90_splitk_128x64").pdl, Pdl::Early);
    EXPECT_EQ(plan(1, 4096, 4096, "sm90_splitk_64x8_occ2").pdl, Pdl::Early);
    EXPECT_EQ(plan(4096, 4096, 4096, "sm90_coop_128x256_2x1").pdl, Pdl::Early);
    char text[512];
    const Plan late = plan(128, 4096, 4096, "sm90_splitk_128x64");
    late.print(text, sizeof text);
    EXPECT_EQ(late.pdl, Pdl::Late);
    EXPECT_NE(std::string(text).find(" pdl=late "), std::string::npos) << text;
}

// For hgemm_explain() and hgemm_workspace_size() NULL counts as an aligned pointer, also for a C that is
// read.
TEST(Dispatch, NullPointersAreWellAligned)
{
    NEEDS_CUDA_BUILD();
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.m = g.n = g.lda = g.ldc = g.ldd = 8192;
    g.k = g.ldb = 8;
    g.beta = 1;
    const Plan null = choose(h200, to_problem(g), "", "", size_t{192} << 20).plan;
    alignas(16) char elements[16] = {};
    g.a = g.b = g.c = elements;
    g.d = elements;
    const Plan given = choose(h200, to_problem(g), "", "", size_t{192} << 20).plan;
    EXPECT_EQ(null.kernel, given.kernel);
    EXPECT_EQ(null.workspace, given.workspace);
}

// A launch takes 2^31 - 1 CTAs, whatever the kernel, its slices and their number.
TEST(Dispatch, GridsFitALaunch)
{
    NEEDS_CUDA_BUILD();
    const auto expect_fits = [](const Backend& backend, const Problem& problem, const char* kernel,
                                int split) {
        Options options{};
        std::strcpy(options.kernel, kernel);
        options.split = split;
        Plan plan{};
        if (backend.choose(problem, h200, options, plan)) {
            EXPECT_LE(plan.grid, INT32_MAX) << kernel << " split " << split << " k " << problem.k;
        }
    };
    for (const int64_t batch : {(int64_t{1} << 29) + 1, (int64_t{1} << 30) - 1})
        for (const int64_t k : {8, 4096})
            for (const int split : {0, 4}) {
                Problem many = linear_layer(1, 1, k);
                many.batch = batch;
                for (const Backend* backend : all_backends())
                    for (int kernel = 0; kernel < backend->kernel_count && backend->serves(h200); ++kernel)
                        expect_fits(*backend, many, backend->kernels[kernel].name, split);
            }
}

}  // namespace
}  // namespace hg
