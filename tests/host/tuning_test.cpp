// The tuning file: for which problems its lines decide, and when the library's own choice runs instead.
#include "src/tuning/key.hpp"
#include "tuning_fixture.hpp"

namespace hg {
namespace {

TEST(TuningKey, NamesWhatSpeedDependsOn)
{
    const auto key = [](auto change, Mode mode = Mode::Default) {
        Problem p = linear_layer(64, 4096, 7168);
        change(p);
        return tuning_key(p, mode);
    };
    const std::string plain = "64x4096x7168,f16,tn";
    EXPECT_EQ(key([](Problem&) {}), plain);
    EXPECT_EQ(key([](Problem&) {}, Mode::BatchInvariant), plain + ",invariant");
    EXPECT_EQ(key([](Problem& p) { p.a = {p.a.ptr, nullptr, 1, 64, 0, 0}; }), "64x4096x7168,f16,nn");
    EXPECT_EQ(key([](Problem& p) { p.b = {p.b.ptr, nullptr, 1, 4096, 0, 0}; }), "64x4096x7168,f16,tt");
    EXPECT_EQ(key([](Problem& p) { p.a.k_stride = 3; }), "64x4096x7168,f16,sn");
    EXPECT_EQ(key([](Problem& p) { p.a.ptr = reinterpret_cast<void*>(0x1002); }), plain + ",a=2");
    EXPECT_EQ(key([](Problem& p) { p.b.row_stride = 7172; }), plain + ",b=8");
    EXPECT_EQ(key([](Problem& p) { p.d.ld = 4098; }), plain + ",d=4");
    EXPECT_EQ(key([](Problem& p) { p.d.type = Type::F32; }), plain + ",d=f32");
    EXPECT_EQ(key([](Problem& p) { p.c = p.d; }), plain + ",c");
    EXPECT_EQ(key([](Problem& p) {
                  p.bias = {p.a.ptr, 0, Type::F32, BiasAlong::Columns};
                  p.activation = Activation::GeluTanh;
                  p.aux = p.d;
              }),
              plain + ",bias=columns+f32,gelu_tanh,aux");
    EXPECT_EQ(key([](Problem& p) {
                  p.batch = 8;
                  p.a.batch_stride = 64 * 7168;
                  p.d.batch_stride = 4;
              }),
              "64x4096x7168x8,f16,tn,b=shared,d=8");
    EXPECT_EQ(key([](Problem& p) {
                  p.batch = 2;
                  p.a.array = p.b.array = &p.a.ptr;
                  p.d.array = &p.d.ptr;
              }),
              "64x4096x7168x2,f16,tn,a=array,b=array,d=array");
    EXPECT_EQ(key([](Problem& p) {
                  p.groups = {&p.m, GroupsBy::Offsets, false, false, 0};
              }),
              plain + ",offsets");
    EXPECT_EQ(key([](Problem& p) {
                  p.groups = {&p.m, GroupsBy::Ends, true, false, 0};
              }),
              plain + ",offsets");
    EXPECT_EQ(key([](Problem& p) {
                  p.groups = {&p.m, GroupsBy::Counts, false, false, 0};
              }),
              plain + ",counts");
    EXPECT_EQ(key([](Problem& p) { p.groups = {&p.m, GroupsBy::Ends, true, true, 0}; }), plain + ",k");
}

// What the plan cache takes for one shape has one key.
TEST(TuningKey, DoesNotDependOnAddressesOrScalars)
{
    Problem p = linear_layer(64, 4096, 7168);
    const std::string key = tuning_key(p, Mode::Default);
    p.a.ptr = reinterpret_cast<void*>(0x7f0000000010);
    p.b.ptr = nullptr;
    p.alpha = 3;
    p.alpha_device = &p.alpha;
    EXPECT_EQ(tuning_key(p, Mode::Default), key);
}

TEST_F(TuningFile, DecidesForItsProblemsAlone)
{
    NEEDS_CUDA_BUILD();
    write(header() + "# a remark\n\n" + line(layer, splitk));
    open();
    const Plan tuned = plan(layer);
    EXPECT_EQ(tuned.why, Why::TunedHere);
    char text[512];
    tuned.print(text, sizeof text);
    EXPECT_TRUE(contains(text, "kernel=sm90_splitk_64x64 ")) << text;
    EXPECT_TRUE(contains(text, " split=2 ")) << text;
    EXPECT_TRUE(contains(text, " pdl=late ")) << text;
    EXPECT_TRUE(contains(text, "swap_ab=1")) << text;
    EXPECT_TRUE(contains(text, "why=tuned-here")) << text;
    for (const Problem& other : {linear_layer(65, 4096, 4096), linear_layer(64, 4096, 4104)}) {
        EXPECT_FALSE(is_tuned(other));
        EXPECT_EQ(choose(h200, other, "", "", 192 * mib).kernel, kernel_of(plan(other)));
    }
    EXPECT_TRUE(contains(log(), "has choices for 1 problem")) << log();
}

// hgemm_tune() decides whatever the file says, for its problem alone; "" is the library's own choice.
TEST_F(TuningFile, IsOverruledByWhatWasTunedLater)
{
    NEEDS_CUDA_BUILD();
    const Problem other = linear_layer(65, 4096, 4096);
    write(header() + line(layer, splitk) + line(other, splitk));
    open();
    ASSERT_TRUE(is_tuned(layer));
    handle.tuning->choose(tuning_key(layer, Mode::Default), "sm90_pingpong_128x128");
    handle.cache->clear();
    EXPECT_EQ(kernel_of(plan(layer)), "sm90_pingpong_128x128");
    EXPECT_TRUE(is_tuned(layer));
    EXPECT_EQ(kernel_of(plan(other)), "sm90_splitk_64x64");
    handle.tuning->choose(tuning_key(layer, Mode::Default), "");
    handle.cache->clear();
    EXPECT_FALSE(is_tuned(layer));
    EXPECT_EQ(kernel_of(plan(layer)), choose(h200, layer, "", "", 192 * mib).kernel);
}

// An entry that was measured on aligned operands is not one for misaligned ones.
TEST_F(TuningFile, DoesNotDecideForOtherOperands)
{
    NEEDS_CUDA_BUILD();
    write(header() + line(layer, splitk));
    open();
    const auto is_tuned_after = [&](auto change) {
        Problem p = layer;
        change(p);
        return is_tuned(p);
    };
    EXPECT_TRUE(is_tuned_after([](Problem& p) { p.a.ptr = reinterpret_cast<void*>(0x9010); }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.a.ptr = reinterpret_cast<void*>(0x9002); }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.b.row_stride = 4097; }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.d.ld = 4097; }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.type_ab = Type::BF16; }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.activation = Activation::Silu; }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.c = p.d; }));
    EXPECT_FALSE(is_tuned_after([](Problem& p) { p.batch = 2; }));
}

TEST_F(TuningFile, DecidesForGroups)
{
    NEEDS_CUDA_BUILD();
    Problem groups = linear_layer(512, 2048, 1024);
    groups.batch = 8;
    groups.b.batch_stride = 2048 * 1024;
    groups.groups = {&groups.m, GroupsBy::Offsets, false, false, 0};
    open();
    const std::string own = kernel_of(plan(groups));
    for (int i = 0; i < handle.backends[0]->kernel_count; ++i) {
        const std::string name = handle.backends[0]->kernels[i].name;
        Options options{};
        options.workspace = 192 * mib;
        Plan ignored{};
        if (name == own || make_tuned_plan(name, groups, h200, options, handle.served_by(), ignored))
            continue;
        write(header() + line(groups, name));
        open();
        EXPECT_TRUE(is_tuned(groups));
        EXPECT_EQ(kernel_of(plan(groups)), name);
        return;
    }
    FAIL() << "no other kernel takes groups";
}

TEST_F(TuningFile, KernelsThatCannotRunAreNotUsed)
{
    NEEDS_CUDA_BUILD();
    const auto expect = [&](const char* kernel, const Problem& problem, const char* why) {
        write(header() + line(problem, kernel));
        open();
        fail(HGEMM_STATUS_INTERNAL, "an earlier failure");
        expect_refused(problem, why);
        EXPECT_EQ(kernel_of(plan(problem)), choose(h200, problem, "", "", 192 * mib).kernel);
        EXPECT_TRUE(contains(hgemm_last_error(), "an earlier failure")) << hgemm_last_error();
    };
    Problem nothing = layer;
    nothing.k = 0;
    expect("sm100_2cta_256x256_static", layer, "the library has no such kernel for the device");
    expect("sm90_none", layer, "the library has no such kernel for the device");
    expect("sm120_64x64x64_s3", layer, "no backend of the handle has the kernel");
    expect("host_blocked", layer, "the library has no such kernel for the device");
    expect("sm90_splitk_64x64/split=9", layer, "more than 2^30 tiles, or what was forced");
    expect("sm80_64x64x64_s4/swap_ab=1", layer, "/swap_ab=1 is not offered");
    expect("sm90_gemv_256x4", layer, "more than 2^30 tiles, or what was forced");
    expect("sm80_64x64x64_s4", nothing, "k is 0");
    write(header() + line(layer, splitk));
    open(h200, "sm80");
    expect_refused(layer, "no backend of the handle has the kernel");
    write(header() + line(layer, "sm80_64x64x64_s4"));
    open(h200, "sm80");
    EXPECT_TRUE(is_tuned(layer));
}

TEST_F(TuningFile, PlanFitsTheWorkspace)
{
    NEEDS_CUDA_BUILD();
    const Problem deep = linear_layer(256, 256, 16384);
    write(header() + line(deep, "sm90_splitk_global_64x64/split=8"));
    open();
    ASSERT_TRUE(is_tuned(deep)) << log();
    const size_t needed = plan(deep).workspace;
    EXPECT_GT(needed, 0u);
    set_workspace(needed / 2);
    expect_refused(deep, "");
    EXPECT_LE(plan(deep).workspace, needed / 2);
}

TEST_F(TuningFile, HoldsOnAllSmsAlone)
{
    NEEDS_CUDA_BUILD();
    write(header() + line(layer, splitk));
    open();
    handle.options.sm_limit = 64;
    expect_refused(layer, "the handle may not use all SMs");
    open();
    handle.device.sm_count = 64;  // as on a green context
    expect_refused(layer, "the handle may not use all SMs");
    open();
    EXPECT_TRUE(is_tuned(layer));
}

// Each m is tuned to another kernel; all that are legal in the mode sum K in one order.
TEST_F(TuningFile, KeepsBitsOfTheBatchInvariantMode)
{
    NEEDS_CUDA_BUILD();
    const char* kernels[] = {splitk,
                             "sm90_splitk_64x64/split=1",
                             "sm90_pingpong_128x128",
                             "sm90_coop_128x256_2x1/stream_k=1",
                             "sm90_coop_128x256_2x1/stream_k=0",
                             "sm90_direct_64x16/split=2",
                             "sm90_direct_64x16",
                             "sm90_gemv_256x4",
                             "sm80_64x64x64_s4",
                             "sm80_64x64x64_s4/split=2"};
    std::string text = header();
    int64_t m = 0;
    for (const char* kernel : kernels)
        text += line(linear_layer(++m * 16, 4096, 4096), kernel, Mode::BatchInvariant);
    write(text);
    open();
    handle.options.mode = Mode::BatchInvariant;
    std::vector<std::string> used;
    for (int64_t i = 1; i <= m; ++i) {
        const Problem problem = linear_layer(i * 16, 4096, 4096);
        const Plan decided = plan(problem);
        EXPECT_EQ(decided.split, 1);
        EXPECT_FALSE(decided.sm90.stream_k);
        EXPECT_STREQ(decided.backend->name, "sm90");
        const std::string kernel = kernel_of(decided);
        EXPECT_FALSE(kernel.starts_with("sm90_direct") || kernel.starts_with("sm90_gemv")) << kernel;
        if (decided.why == Why::TunedHere)
            used.push_back(kernel);
    }
    EXPECT_EQ(used, (std::vector<std::string>{"sm90_splitk_64x64", "sm90_pingpong_128x128",
                                              "sm90_coop_128x256_2x1"}));
    EXPECT_TRUE(contains(log(), "the kernel is of another backend, and the mode is batch-invariant"));
    handle.cache->clear();
    handle.options.mode = Mode::Default;
    EXPECT_FALSE(is_tuned(linear_layer(32, 4096, 4096)));
}

}  // namespace
}  // namespace hg
