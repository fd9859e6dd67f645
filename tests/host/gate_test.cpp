// A D with fewer columns than the product, as gated activations make it: what the host checks and packs of
// it. No kernel writes one yet.
#include "arch/common/host/facts.hpp"
#include "devices.hpp"
#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/tuning/key.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace hg {
namespace {

constexpr Arg listed[] = {Arg::Handle, Arg::Layout, Arg::M,       Arg::N,    Arg::K,   Arg::A,
                          Arg::Lda,    Arg::B,      Arg::Ldb,     Arg::C,    Arg::Ldc, Arg::D,
                          Arg::Ldd,    Arg::Aux,    Arg::StrideD, Arg::Ldaux};
constexpr int64_t m = 6, n = 32, k = 8;
constexpr uintptr_t d_at = 1 << 20;

void* address(uintptr_t at) { return reinterpret_cast<void*>(at); }

// Row-major f16, packed, D half as wide as the product, and A, B and C far from it.
hgemm_args_t gated()
{
    hgemm_args_t g{};
    g.layout = HGEMM_ROW_MAJOR;
    g.transa = HGEMM_NO_TRANS;
    g.transb = HGEMM_TRANS;
    g.type_ab = g.type_c = g.type_d = HGEMM_F16;
    g.m = m;
    g.n = n;
    g.k = k;
    g.alpha = 1;
    g.batch_count = 1;
    g.a = address(1 << 12);
    g.b = address(1 << 16);
    g.c = address(1 << 24);
    g.d = address(d_at);
    g.lda = g.ldb = k;
    g.ldc = g.ldaux = n;
    g.ldd = n / 2;
    return g;
}

std::string refusal(const hgemm_args_t& g, int32_t fold)
{
    const Signature signature{listed, true, fold};
    return check_arguments(signature, g, Pointers::Checked) == ok ? "" : hgemm_last_error();
}

TEST(Fold, LinesOfDMayBeAsShortAsItsWidth)
{
    hgemm_args_t g = gated();
    EXPECT_EQ(refusal(g, 2), "");
    EXPECT_NE(refusal(g, 1).find("must be at least n = 32"), std::string::npos) << refusal(g, 1);
    g.ldd = n / 2 - 1;
    EXPECT_NE(refusal(g, 2).find("must be at least the width of d = 16"), std::string::npos)
        << refusal(g, 2);
}

TEST(Fold, CAndAuxAreAsWideAsTheProduct)
{
    hgemm_args_t g = gated();
    g.beta = 1;
    g.ldc = n - 1;
    EXPECT_NE(refusal(g, 2).find("ldc"), std::string::npos) << refusal(g, 2);
    g.ldc = n;
    g.aux = address(1 << 28);
    EXPECT_EQ(refusal(g, 2), "");
    g.ldaux = n - 1;
    EXPECT_NE(refusal(g, 2).find("ldaux"), std::string::npos) << refusal(g, 2);
}

TEST(Fold, DIsNotC)
{
    hgemm_args_t g = gated();
    g.beta = 1;
    g.ldd = n;
    g.d = const_cast<void*>(g.c);
    EXPECT_EQ(refusal(g, 1), "");
    EXPECT_NE(refusal(g, 2).find("narrower"), std::string::npos) << refusal(g, 2);
}

TEST(Fold, DividesTheLinesOfD)
{
    hgemm_args_t g = gated();
    g.n = n + 1;
    EXPECT_NE(refusal(g, 2).find("multiple of 2"), std::string::npos) << refusal(g, 2);
    g = gated();
    g.m = m + 1;
    EXPECT_EQ(refusal(g, 2), "");
}

// The operand begins where D ends.
TEST(Fold, DEndsEarlier)
{
    hgemm_args_t g = gated();
    g.ldd = n;
    g.a = address(d_at + 2 * ((m - 1) * n + n / 2));
    EXPECT_EQ(refusal(g, 2), "");
    EXPECT_NE(refusal(g, 1).find("overlaps"), std::string::npos) << refusal(g, 1);
    g.a = address(d_at + 2 * ((m - 1) * n + n / 2 - 1));
    EXPECT_NE(refusal(g, 2).find("overlaps"), std::string::npos) << refusal(g, 2);
}

// Two problems lie side by side in the lines that one D would fill without folding.
TEST(Fold, OutputsOfABatchMayLieSideBySide)
{
    hgemm_args_t g = gated();
    g.ldd = n;
    g.batch_count = 2;
    g.stride_d = n / 2;
    EXPECT_EQ(refusal(g, 2), "");
    EXPECT_NE(refusal(g, 1).find("share elements"), std::string::npos) << refusal(g, 1);
    g.stride_d = n / 2 - 1;
    EXPECT_NE(refusal(g, 2).find("share elements"), std::string::npos) << refusal(g, 2);
}

TEST(Fold, ColumnsOfTheProblemAreThoseAlongLinesOfD)
{
    hgemm_args_t g = gated();
    EXPECT_EQ(to_problem(g).columns(), n);
    EXPECT_EQ(to_problem(g, 2).columns(), n / 2);
    EXPECT_EQ(to_problem(g, 2).n, n);
    g.layout = HGEMM_COL_MAJOR;
    g.m = n;
    g.n = m;
    g.lda = n;
    g.ldb = m;
    EXPECT_EQ(to_problem(g, 2).columns(), n / 2);
    EXPECT_EQ(to_problem(g, 2).m, m);
}

TEST(Fold, FactsAreOfTheNarrowOutput)
{
    Problem p = linear_layer(64, 24, 64);
    p.d.ld = 32;
    EXPECT_TRUE(Facts(p).output.tma);
    EXPECT_TRUE(Facts(p).output.plain);
    EXPECT_TRUE(Facts(p).output.vectors);
    p.folded = 12;  // 12 columns of two bytes
    const OutputFacts output = Facts(p).output;
    EXPECT_EQ(output.columns, 12);
    EXPECT_FALSE(output.tma);
    EXPECT_FALSE(output.plain);
    EXPECT_FALSE(output.vectors);
    EXPECT_FALSE(output.fusible);
    p.n = 28;
    EXPECT_TRUE(Facts(p).output.tma);
}

TEST(Fold, IsPartOfTheTuningKey)
{
    Problem p = linear_layer(64, 32, 64);
    const std::string plain = tuning_key(p, Mode::Default);
    p.folded = 16;
    EXPECT_EQ(tuning_key(p, Mode::Default), plain + ",columns16");
}

TEST(Fold, NoBackendHasKernelsForIt)
{
    Problem p = linear_layer(64, 32, 64);
    p.folded = 16;
    p.d.ld = 16;
    for (const Device& device : {host(), h200, b200, a100, rtx5090}) {
        if (!has_cuda() && device.ordinal != HGEMM_DEVICE_HOST)
            continue;
        EXPECT_NE(choose(device, p).status, ok) << device.name;
        EXPECT_NE(std::string(hgemm_last_error()).find("no kernel folds"), std::string::npos)
            << hgemm_last_error();
    }
}

}  // namespace
}  // namespace hg
