// White-box tests of what sm90 chooses by measurements: no GPU is needed.
#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hg {
namespace {

// Tiles that fit one number of rows need not fit fewer.
TEST(Sm90, TunedLinesAreForTheirOwnRows)
{
    const auto why = [](int64_t m) {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(m, 57344, 8192), h200, Options{}, plan));
        return plan.why;
    };
    EXPECT_EQ(why(256), Why::Tuned);
    for (const int64_t m : {193, 208, 255, 257})
        EXPECT_NE(why(m), Why::Tuned) << m;
}

// Slices of few rows are branches with as many leaves as registers have room for. Of many rows, sums of
// four leaves wait in the workspace.
TEST(Sm90, Trees)
{
    const auto planned = [](int64_t m, int64_t n, int64_t k, int64_t leaves, size_t workspace) {
        Problem p = linear_layer(m, n, k);
        p.leaves = leaves;
        Options options{};
        options.workspace = workspace;
        Plan plan{};
        EXPECT_TRUE(sm90::choose(p, h200, options, plan)) << plan.refusal;
        EXPECT_TRUE(sm90::is_tree(plan.kernel));
        const sm90::Config& c = sm90::config_of(plan.kernel);
        EXPECT_EQ(c.is_split(), m < 512 || (workspace == 0 && leaves > 4)) << m;
        EXPECT_EQ(leaves % plan.split, 0) << m;
        if (c.is_split()) {
            EXPECT_LE(leaves / plan.split, sm90::max_slice_leaves) << m;
        }
        EXPECT_EQ(plan.workspace > 0, !c.is_split() && leaves > 4) << m;
        return plan;
    };
    constexpr size_t ample = 64 << 20;
    for (const int64_t m : {1, 8, 16, 64, 128})
        planned(m, 4096, 14336, 16, ample);
    // 128 CTAs of two consumers with 64 x 128 sums, of four leaves and of eight.
    EXPECT_EQ(planned(4096, 4096, 14336, 16, ample).workspace,
              size_t{128} * 2 * 64 * 128 * sizeof(float) * 2);
    EXPECT_EQ(planned(4096, 4096, 2048, 4, 0).workspace, 0u);
    planned(4096, 4096, 14336, 16, 0);
    Problem p = linear_layer(64, 4096, 4160);
    p.leaves = 2;
    Plan plan{};
    EXPECT_FALSE(sm90::choose(p, h200, Options{}, plan));
    EXPECT_STREQ(plan.refusal, "a leaf of k is no multiple of 64");
}

// Where D is a tile or two and K deep.
TEST(Sm90, ManySlices)
{
    const auto split = [](int64_t m, int64_t n, int64_t k, int asked = 0) {
        Options options{};
        options.workspace = size_t{192} << 20;
        options.counters = sm90::counter_words(h200, options.workspace);
        options.split = asked;
        Plan plan{};
        return sm90::choose(linear_layer(m, n, k), h200, options, plan) ? plan.split : -1;
    };
    EXPECT_GT(split(64, 64, 65536), 16);
    EXPECT_GT(split(8, 128, 262144), 16);
    EXPECT_LE(split(64, 64, 16384), 16);
    EXPECT_LE(split(128, 128, 65536), 16);
    // Asked for, they need no more than a K tile each.
    EXPECT_EQ(split(64, 64, 1280, 20), 20);
    EXPECT_EQ(split(64, 64, 1280, 24), -1);
    EXPECT_EQ(split(64, 64, 65536, 21), -1);
}

// The networks correct the model, by less than a factor of three.
TEST(Sm90, LearnedTimesAreNearTheModels)
{
    using sm90::Card;
    for (const int64_t m : {1, 24, 128, 500, 1024})
        for (const int64_t n : {64, 1000, 4096})
            for (const int64_t k : {24, 512, 4096}) {
                const Problem p = linear_layer(m, n, k);
                Plan plan;
                ASSERT_TRUE(sm90::choose(p, h200, Options{}, plan));
                const sm90::Candidate candidate{plan.kernel,        plan.swap_ab, plan.split,
                                                plan.sm90.stream_k, plan.tiles,   !plan.uses_pdl()};
                const double us = sm90::predict(p, candidate, 132).us;
                for (const Card card : {Card::H100, Card::H200}) {
                    const sm90::Corrected corrected = sm90::corrected_us(p, candidate, us, 132, card);
                    for (const double time : {corrected.early, corrected.late}) {
                        EXPECT_GT(time, us / 3) << m << 'x' << n << 'x' << k;
                        EXPECT_LT(time, us * 3) << m << 'x' << n << 'x' << k;
                    }
                }
            }
}

// Only problems like those that were measured are left to the network.
TEST(Sm90, WhatIsLearned)
{
    Problem p = linear_layer(64, 4096, 4096);
    EXPECT_TRUE(sm90::has_correction(p, 132));
    EXPECT_FALSE(sm90::has_correction(p, 100));
    p.batch = 2;
    EXPECT_FALSE(sm90::has_correction(p, 132));
    p = linear_layer(512, 512, 512);
    EXPECT_TRUE(sm90::has_correction(p, 132));
    p.batch = 2;
    EXPECT_TRUE(sm90::has_correction(p, 132));
    p = linear_layer(64, 4096, 4096);
    p.b = {p.b.ptr, nullptr, 1, 4096, 0};
    EXPECT_TRUE(sm90::has_correction(p, 132));
}

Problem batch_of(int64_t batch, Problem p)
{
    p.batch = batch;
    p.a.batch_stride = p.m * p.k;
    p.b.batch_stride = p.n * p.k;
    p.d.batch_stride = p.m * p.n;
    return p;
}

// Batches of many small GEMMs get four CTAs an SM, which were not measured for other problems.
TEST(Sm90, SmallProductsOfBatchesCrowd)
{
    const auto crowds = [](const Problem& p) {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(p, h100, Options{}, plan));
        const sm90::Config& c = sm90::configs[plan.kernel];
        return c.ctas_per_sm == 4 && c.tile_n >= 32;
    };
    for (const int64_t size : {16, 32, 48, 64}) {
        EXPECT_TRUE(crowds(batch_of(2048, linear_layer(size, size, size)))) << size;
        EXPECT_FALSE(crowds(linear_layer(size, size, size))) << size;
        EXPECT_FALSE(crowds(linear_layer(size * 32, size * 32, size))) << size;
    }
    EXPECT_FALSE(crowds(batch_of(16, linear_layer(512, 512, 512))));
}

// By bandwidth: H100 3.35 TB/s, H200 4.9, GH200 with HBM3 4.0; 0 if the driver does not say.
TEST(Sm90, WhichCardItIs)
{
    using sm90::Card;
    EXPECT_EQ(sm90::card_of(h100), Card::H100);
    EXPECT_EQ(sm90::card_of(with_memory(h200, 4'000'000'000'000)), Card::H100);
    EXPECT_EQ(sm90::card_of(with_memory(h200, 4'917'000'000'000)), Card::H200);
    EXPECT_EQ(sm90::card_of(h200), Card::H200);
}

// Above 1 ms only H100s have been measured often enough.
TEST(Sm90, LongProductsAreLearnedOnH100s)
{
    const auto why = [](const Device& device) {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(8000, 8192, 16384), device, Options{}, plan));
        return plan.why;
    };
    EXPECT_EQ(why(h100), Why::Network);
    EXPECT_EQ(why(h200), Why::Model);
}

// If an operand has to be copied, an H200's numbers are used, since the times of direct kernels are an
// H200's.
TEST(Sm90, CopiedOperandsAreChosenForAsOnH200s)
{
    Problem p = linear_layer(2, 3584, 3584);
    p.a = {p.a.ptr, nullptr, 1, 2, 0};
    Options o{};
    o.workspace = size_t{256} << 20;
    Plan on_h100{}, on_h200{};
    ASSERT_TRUE(sm90::choose(p, h100, o, on_h100) && sm90::choose(p, h200, o, on_h200));
    EXPECT_TRUE(on_h200.repack_a);
    EXPECT_EQ(on_h100.kernel, on_h200.kernel);
    EXPECT_EQ(on_h100.predicted_us, on_h200.predicted_us);
}

// gemv kernels serve up to four rows and an M-major A that TMA cannot address, or a vast one.
TEST(Sm90, WhatGemvKernelsServe)
{
    const auto kernel = [](Problem p, Mode mode = Mode::Default) -> std::string {
        Options o{};
        o.mode = mode;
        o.workspace = size_t{256} << 20;
        Plan plan{};
        EXPECT_TRUE(sm90::choose(p, h100, o, plan));
        const std::string name = sm90::kernels[plan.kernel].name;
        return sm90::is_direct(plan.kernel) &&
                       sm90::is_gemv(sm90::direct_configs[plan.kernel - sm90::first_direct])
                   ? name.substr(name.rfind('x'))
                   : "others";
    };
    const auto product = [](int64_t m, int64_t n, int64_t k, int64_t ldb) {
        Problem p = linear_layer(m, n, k);
        p.b = {p.b.ptr, nullptr, 1, ldb, 0};
        return p;
    };
    EXPECT_EQ(kernel(product(1, 1001, 1000, 1001)), "x1");
    EXPECT_EQ(kernel(product(2, 1001, 1000, 1001)), "x2");
    EXPECT_EQ(kernel(product(3, 1001, 1000, 1001)), "x4");
    EXPECT_EQ(kernel(product(4, 1001, 1000, 1001)), "x4");
    EXPECT_EQ(kernel(product(5, 1001, 1000, 1001)), "others");
    EXPECT_EQ(kernel(product(1, 1001, 1000, 1001), Mode::BatchInvariant), "others");
    EXPECT_EQ(kernel(linear_layer(1, 1001, 1001)), "others");
    EXPECT_EQ(kernel(product(1, 129, 30000, 129)), "others");
    EXPECT_EQ(kernel(product(1, 4096, 4096, 4096)), "others");
    EXPECT_EQ(kernel(product(1, 57344, 8192, 57344)), "x1");
    EXPECT_EQ(kernel(product(2, 57344, 8192, 57344)), "x2");
    EXPECT_EQ(kernel(product(3, 57344, 8192, 57344)), "others");
    Problem batched = product(1, 1001, 1000, 1001);
    batched.batch = 2;
    EXPECT_EQ(kernel(batched), "others");
    Problem mirrored = linear_layer(1001, 1, 1000);
    mirrored.a = {mirrored.a.ptr, nullptr, 1, 1001, 0};
    EXPECT_EQ(kernel(mirrored), "x1");
}

// No other backend is asked then: sm80's model, which ignores memory, would predict a shorter time.
TEST(Sm90, GemvIsNotLeftToOtherBackends)
{
    for (const int64_t n : {151936, 152064}) {
        Problem p = linear_layer(2, n, 8192);
        p.b = {p.b.ptr, nullptr, 1, n, 0};
        EXPECT_TRUE(choose(h100, p).kernel.starts_with("sm90_gemv_256x2")) << choose(h100, p).kernel;
    }
}

// One long wave of a gemv kernel runs with pdl=off, so that its CTAs do not crowd on some SMs.
TEST(Sm90, OneLongWaveOfGemvRunsWithPdlOff)
{
    const auto uses_pdl = [](int64_t n, int64_t k) {
        Problem p = linear_layer(2, n, k);
        p.b = {p.b.ptr, nullptr, 1, n, 0};
        Plan plan{};
        EXPECT_TRUE(sm90::choose(p, h100, Options{}, plan));
        EXPECT_NE(plan.pdl, Pdl::Early);
        return plan.uses_pdl();
    };
    EXPECT_TRUE(uses_pdl(8191, 8191));
    EXPECT_FALSE(uses_pdl(57344, 8192));
}

struct Exception {
    int64_t n, k, m;
    const char* kernel;
    bool swap_ab;
    int split;
    bool stream_k;
    Pdl pdl;
};

constexpr Pdl Early = Pdl::Early, Late = Pdl::Late, Off = Pdl::Off;

#define TUNED(n, k, m_above, m, name, swap_ab, split, stream_k, pdl, us, without)                          \
    {n, k, m, #name, swap_ab, split, stream_k, pdl},
constexpr Exception exceptions_of_h200[] = {
#include "arch/sm90/choose/h200/tuned.def"
};
constexpr Exception exceptions_of_h100[] = {
#include "arch/sm90/choose/h100/tuned.def"
};
#undef TUNED

void expect_chosen(const Exception& e, const Device& device)
{
    Options o{};
    o.workspace = size_t{64} << 20;
    o.counters = sm90::counter_words(device, o.workspace);
    Plan plan{};
    ASSERT_TRUE(sm90::choose(linear_layer(e.m, e.n, e.k), device, o, plan));
    SCOPED_TRACE(std::to_string(e.m) + 'x' + std::to_string(e.n) + 'x' + std::to_string(e.k));
    EXPECT_EQ(plan.why, Why::Tuned);
    EXPECT_STREQ(sm90::kernels[plan.kernel].name, e.kernel);
    EXPECT_EQ(plan.swap_ab, e.swap_ab);
    EXPECT_EQ(plan.split, e.split);
    EXPECT_EQ(plan.sm90.stream_k, e.stream_k);
    EXPECT_EQ(plan.pdl, e.pdl);
}

// A row that is never chosen, since another one comes first or it is not legal, would be dead.
TEST(Sm90, EachExceptionIsChosen)
{
    for (const Exception& e : exceptions_of_h200)
        expect_chosen(e, h200);
    for (const Exception& e : exceptions_of_h100)
        expect_chosen(e, h100);
}

// A measured exception also serves the transposed problem, unless K is small.
TEST(Sm90, ExceptionsAreReadAsTransposes)
{
    const auto why = [](int64_t m, int64_t n, int64_t k) {
        Plan plan{};
        EXPECT_TRUE(sm90::choose(linear_layer(m, n, k), h200, Options{}, plan));
        return plan.why;
    };
    EXPECT_EQ(why(1024, 18432, 7168), Why::Tuned);
    EXPECT_EQ(why(18432, 1024, 7168), Why::Tuned);
    EXPECT_EQ(why(512, 16384, 128), Why::Tuned);
    EXPECT_NE(why(16384, 512, 128), Why::Tuned);
}

// A kernel that was planned before, and is slower, shares K tiles: nothing of its plan is left.
TEST(Sm90, PlansOfGatedKernelsAreTheirOwn)
{
    int whole = 0;
    for (const int64_t m : {64, 256, 512, 700, 1024, 2048})
        for (const int64_t n : {7168, 12288, 28672}) {
            Problem p = linear_layer(m, n, 4096);
            p.d.ld = n / 2;
            p.gate = {n / 2, 7.0f, 1.0f, -0.0f};
            p.activation = Activation::Silu;
            Plan plan{};
            Options options{};
            options.workspace = size_t{192} << 20;
            options.counters = 1 << 20;
            if (!sm90::choose(p, h200, options, plan) || plan.sm90.stream_k)
                continue;
            ++whole;
            EXPECT_EQ(plan.sm90.stream_k_tiles, 0) << m << " x " << n;
            EXPECT_LT(plan.workspace, 1000u) << m << " x " << n;
        }
    EXPECT_GT(whole, 10);
}

}  // namespace
}  // namespace hg
