// wgmma: against the H200's results over all layouts in shared memory, against plain sums, and what is
// reported when registers or shared memory are used too early.
#include "numerics/tensor_core.hpp"

#include "test/golden.hpp"
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace emu {
namespace {

using golden::Inputs;

std::string registers(const std::string& prefix, int count, int first = 0)
{
    std::string list = "{";
    for (int i = 0; i < count; i++)
        list += (i ? ", " : "") + prefix + std::to_string(first + i);
    return list + "}";
}

// The kernel that ran on the H200: raw shared memory, descriptors and accumulators in, accumulators out.
std::string hardware_kernel(golden::Form form, bool a_transposed, bool b_transposed)
{
    const char* types[] = {"f32.bf16.bf16", "f32.f16.f16", "f16.f16.f16"};
    int values = form == golden::f16_result ? 32 : 64;
    std::string body = R"(
.reg .b32 %d<64>;
mov.u32 %r2, dynamic;
mul.wide.u32 %rd10, %r1, 49152;
add.u64 %rd10, %rd10, %rd0;
mul.lo.u32 %r3, %r0, 16;
FILL: cvt.u64.u32 %rd11, %r3;
add.u64 %rd11, %rd11, %rd10;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd11];
add.u32 %r8, %r3, %r2;
st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};
add.u32 %r3, %r3, 2048;
setp.lt.u32 %p0, %r3, 49152;
@%p0 bra FILL;
fence.proxy.async.shared::cta;
bar.sync 0;
mul.wide.u32 %rd10, %r1, 32;
add.u64 %rd10, %rd10, %rd1;
ld.global.v2.u64 {%rd12, %rd13}, [%rd10];
ld.global.v2.u64 {%rd14, %rd15}, [%rd10+16];
cvt.u64.u32 %rd16, %r2;
add.u64 %rd13, %rd13, %rd16;
add.u64 %rd15, %rd15, %rd16;
add.u64 %rd15, %rd15, 16384;
shr.u64 %rd13, %rd13, 4;
shr.u64 %rd15, %rd15, 4;
and.b64 %rd13, %rd13, 16383;
and.b64 %rd15, %rd15, 16383;
or.b64 %rd12, %rd12, %rd13;
or.b64 %rd14, %rd14, %rd15;
mad.lo.u32 %r9, %r1, 128, %r0;
mul.wide.u32 %rd17, %r9, 256;
add.u64 %rd18, %rd0, 1572864;
add.u64 %rd18, %rd18, %rd17;
add.u64 %rd19, %rd2, %rd17;
)";
    for (int i = 0; i < values; i++)
        body += "ld.global.u32 %d" + std::to_string(i) + ", [%rd18+" + std::to_string(4 * i) + "];\n";
    body += "setp.ne.u32 %p1, 1, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n128k16." +
            std::string(types[form]) + " " + registers("%d", values) + ", %rd12, %rd14, %p1, 1, 1, " +
            std::to_string(a_transposed) + ", " + std::to_string(b_transposed) +
            ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    for (int i = 0; i < values; i++)
        body += "st.global.u32 [%rd19+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
    return ptx_kernel("sm_90a", 3, body);
}

TEST(Wgmma, GivesTheBitsOfTheH200InAllLayouts)
{
    for (int seed = 0; seed < 2; seed++) {
        Inputs inputs(golden::seeds[seed]);
        for (auto form : {golden::bf16, golden::f16, golden::f16_result})
            inputs.mma(form);
        for (auto form : {golden::bf16, golden::f16, golden::f16_result})
            for (int layout = 0; layout < 4; layout++) {
                auto in = inputs.wgmma(form, layout >> 1, layout & 1);
                uint64_t input = golden::hash(in.memory.data(), in.memory.size()) ^
                                 golden::hash(in.descriptors.data(), in.descriptors.size() * 8);
                ASSERT_EQ(input, golden::wgmma_hashes[seed][form][layout].input);
                Device device(90, 3);
                std::vector<uint32_t> zero(Inputs::wgmma_cases * 8192);
                uint64_t out = device.put(zero);
                EXPECT_EQ(device.run(hardware_kernel(form, layout >> 1, layout & 1),
                                     shape_of(Inputs::wgmma_cases, 128, 1, Inputs::wgmma_shared),
                                     {device.put(in.memory), device.put(in.descriptors), out}),
                          "")
                    << device.message();
                EXPECT_EQ(golden::hash(reinterpret_cast<void*>(out), zero.size() * 4),
                          golden::wgmma_hashes[seed][form][layout].output)
                    << form << " " << layout;
            }
    }
}

// A kernel around lines that multiply: A (64 x 16) and B (N x 16) lie K-major without swizzle behind %rd10
// and %rd11 (descriptors), and thread t holds its fragment of A in %a0 ... %a3.
struct Small {
    int n = 8;
    std::string fence = "fence.proxy.async.shared::cta;", work, sync = "bar.sync 0;";
    std::string late;      // after the store of results
    int accumulators = 4;  // stored
    uint64_t seed = 1;
    int threads = 128;

    std::vector<int> a, b;       // values
    std::vector<float> results;  // [accumulator][thread]
    std::string message;

    Small()
    {
        std::mt19937 random(5);
        for (int i = 0; i < 64 * 16; i++)
            a.push_back(static_cast<int>(random() % 15) - 7);
        for (int i = 0; i < 256 * 16; i++)
            b.push_back(static_cast<int>(random() % 15) - 7);
    }

    int product(int row, int column) const
    {
        int sum = 0;
        for (int k = 0; k < 16; k++)
            sum += a[row * 16 + k] * b[column * 16 + k];
        return sum;
    }

    static int row(int thread, int reg) { return thread / 32 * 16 + thread % 32 / 4 + 8 * (reg >> 1 & 1); }
    static int column(int thread, int reg) { return 8 * (reg >> 2) + 2 * (thread % 4) + (reg & 1); }
    float result(int thread, int reg) const { return results[reg * 128 + thread]; }

    std::string text() const
    {
        std::string body = R"(
.reg .f32 %d<160>;
.reg .b32 %a<4>;
.shared .align 128 .b8 smem[10240];
mov.u32 %r2, smem;
mul.lo.u32 %r3, %r0, 16;
FILL: cvt.u64.u32 %rd8, %r3;
add.u64 %rd8, %rd8, %rd0;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd8];
add.u32 %r8, %r3, %r2;
st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};
add.u32 %r3, %r3, 2048;
setp.lt.u32 %p0, %r3, 10240;
@%p0 bra FILL;
)" + fence + "\n" + sync + R"(
cvt.u64.u32 %rd9, %r2;
shr.u64 %rd9, %rd9, 4;
or.b64 %rd10, %rd9, 0x0000001000080000;
add.u64 %rd11, %rd9, 128;
or.b64 %rd11, %rd11, 0x0000001000080000;
mul.wide.u32 %rd12, %r0, 16;
add.u64 %rd12, %rd12, %rd1;
ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%rd12];
setp.ne.u32 %p1, 1, 0;
setp.ne.u32 %p2, 0, 0;
)";
        for (int i = 0; i < 128; i++)
            body += "mov.f32 %d" + std::to_string(i) + ", 0f00000000;\n";
        body += work + "\n";
        for (int i = 0; i < accumulators; i++)
            body += "mad.lo.u32 %r9, " + std::to_string(i) + ", 128, %r0;\nmul.wide.u32 %rd13, %r9, 4;\n" +
                    "add.u64 %rd13, %rd13, %rd2;\nst.global.f32 [%rd13], %d" + std::to_string(i) + ";\n";
        return ptx_kernel("sm_90a", 3, body + late);
    }

    // Core matrices of 8 rows x 8 k lie one after another, the two along k side by side.
    std::vector<uint16_t> shared_image() const
    {
        std::vector<uint16_t> image(5120);
        for (int i = 0; i < 64 * 16 + 256 * 16; i++) {
            bool left = i < 1024;
            int place = left ? i : i - 1024, row = place / 16, k = place % 16;
            image[(left ? 0 : 1024) + row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8] =
                double_to_f16(left ? a[place] : b[place]);
        }
        return image;
    }

    std::vector<uint16_t> fragments() const
    {
        std::vector<uint16_t> image;
        for (int thread = 0; thread < 128; thread++)
            for (int i = 0; i < 8; i++)
                image.push_back(
                    double_to_f16(a[row(thread, i) * 16 + 2 * (thread % 4) + 8 * (i >> 2) + (i & 1)]));
        return image;
    }

    std::string run()
    {
        Device device(90, seed);
        uint64_t out = device.put(std::vector<float>(128 * 128));
        std::string reports = device.run(text(), shape_of(1, threads),
                                         {device.put(shared_image()), device.put(fragments()), out});
        results = device.get<float>(out, 128 * 128);
        message = device.message();
        return reports;
    }
};

const char* finish = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";

std::string product_text(int n, const std::string& a, const std::string& rest, int first = 0)
{
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16.f32.f16.f16 " +
           registers("%d", n / 2, first) + ", " + a + ", %rd11, " + rest + ";\n";
}

const std::string begin = "wgmma.fence.sync.aligned;\n", plain = "%p1, 1, 1, 0, 0";

TEST(Wgmma, EveryWidth)
{
    for (int n = 8; n <= 256; n += 8) {
        Small small;
        small.seed = static_cast<uint64_t>(n);
        small.accumulators = n / 2;
        small.work = begin + product_text(n, "%rd10", plain) + finish;
        ASSERT_EQ(small.run(), "") << small.message;
        for (int thread = 0; thread < 128; thread++)
            for (int reg = 0; reg < n / 2; reg++)
                ASSERT_EQ(small.result(thread, reg),
                          small.product(Small::row(thread, reg), Small::column(thread, reg)))
                    << n << " " << thread << " " << reg;
    }
}

TEST(Wgmma, AInRegistersSignsAndScaleD)
{
    struct Case {
        std::string a, rest;
        int factor;
    };
    for (const Case& c : {Case{"{%a0, %a1, %a2, %a3}", "%p1, 1, 1, 0", 1},
                          {"{%a0, %a1, %a2, %a3}", "%p1, -1, 1, 0", -1},
                          {"%rd10", "%p1, 1, -1, 0, 0", -1},
                          {"%rd10", "%p1, -1, -1, 0, 0", 1}}) {
        Small small;
        small.accumulators = 8;
        // A first product that the second ignores.
        std::string ignored = c.rest;
        ignored.replace(0, 3, "%p2");
        small.work = begin + product_text(16, c.a, c.rest) + product_text(16, c.a, ignored) +
                     product_text(16, c.a, c.rest) + finish;
        ASSERT_EQ(small.run(), "") << small.message;
        for (int thread = 0; thread < 128; thread++)
            for (int reg = 0; reg < 8; reg++)
                ASSERT_EQ(small.result(thread, reg),
                          2 * c.factor *
                              small.product(Small::row(thread, reg), Small::column(thread, reg)));
    }
}

TEST(Wgmma, TwoAccumulatorsInFlightAndOneGroupLeftOpen)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        Small small;
        small.seed = seed;
        small.accumulators = 8;
        small.work = begin + product_text(8, "%rd10", plain) + product_text(8, "%rd10", plain, 4) +
                     product_text(8, "%rd10", plain) + "wgmma.commit_group.sync.aligned;\n" +
                     product_text(8, "%rd10", plain, 4) + "wgmma.commit_group.sync.aligned;\n" +
                     "wgmma.wait_group.sync.aligned 1;\nadd.f32 %d0, %d0, 0f3f800000;\n" +
                     "wgmma.wait_group.sync.aligned 0;\n";
        ASSERT_EQ(small.run(), "") << small.message;
        for (int thread = 0; thread < 128; thread++)
            for (int reg = 0; reg < 8; reg++)
                ASSERT_EQ(small.result(thread, reg),
                          2 * small.product(Small::row(thread, reg % 4), Small::column(thread, reg % 4)) +
                              (reg == 0));
    }
}

TEST(Wgmma, CompilersMayRenameAccumulatorsInFlight)
{
    Small small;
    small.work = begin + product_text(8, "%rd10", plain, 4) + "wgmma.commit_group.sync.aligned;\n" +
                 "mov.f32 %d0, %d4;\nmov.f32 %d1, %d5;\nmov.f32 %d2, %d6;\nmov.f32 %d3, %d7;\n" +
                 product_text(8, "%rd10", plain) + finish;
    ASSERT_EQ(small.run(), "") << small.message;
    for (int thread = 0; thread < 128; thread++)
        for (int reg = 0; reg < 4; reg++)
            ASSERT_EQ(small.result(thread, reg),
                      2 * small.product(Small::row(thread, reg), Small::column(thread, reg)));
}

TEST(Wgmma, RegistersUsedTooEarlyAreReported)
{
    Small small;
    auto reports = [&](const std::string& work) {
        small.work = work;
        return small.run();
    };
    std::string product = product_text(8, "%rd10", plain), commit = "wgmma.commit_group.sync.aligned;\n";
    std::string in_registers = product_text(8, "{%a0, %a1, %a2, %a3}", "%p1, 1, 1, 0");
    EXPECT_EQ(reports(begin + product + finish), "");
    EXPECT_EQ(reports(product + finish), "wgmma-fence");
    EXPECT_EQ(reports(begin + product + commit), "wgmma-registers");
    EXPECT_EQ(reports(begin + product + "wgmma.wait_group.sync.aligned 0;\n"), "wgmma-registers");
    EXPECT_EQ(reports(begin + product + commit + "wgmma.wait_group.sync.aligned 1;\n"), "wgmma-registers");
    EXPECT_EQ(reports(begin + product + "add.f32 %d0, %d1, %d2;\n" + finish), "wgmma-registers");
    EXPECT_EQ(reports(begin + in_registers + "add.u32 %a0, %r0, 1;\n" + finish), "wgmma-registers");
    EXPECT_EQ(reports(begin + product + finish + "add.f32 %d0, %d0, %d1;\n" + product + finish),
              "wgmma-fence");
    EXPECT_EQ(reports(begin + product + finish + "add.f32 %d0, %d0, %d1;\n" + begin + product + finish),
              "");
    EXPECT_EQ(reports(begin + product + finish + product + finish), "");
    EXPECT_EQ(reports(begin + "add.u32 %a0, %a0, 0;\n" + in_registers + finish), "wgmma-fence");
}

TEST(Wgmma, SharedMemoryUsedTooEarlyIsReported)
{
    std::string product = begin + product_text(8, "%rd10", plain),
                overwrite = "st.shared.u32 [%r2], %r0;\n";
    std::string wait_all = "wgmma.wait_group.sync.aligned 0;\n",
                commit = "wgmma.commit_group.sync.aligned;\n";
    for (uint64_t seed = 1; seed <= 5; seed++) {
        Small small;
        small.seed = seed;
        small.work = product + finish;
        small.fence = "";
        EXPECT_EQ(small.run(), "missing-proxy-fence");
        small = Small{};
        small.sync = "";
        small.work = product + finish;
        EXPECT_EQ(small.run(), "race");
        small = Small{};
        small.seed = seed;
        small.work = product + commit + "setp.eq.u32 %p3, %r0, 0;\n@%p3 " + overwrite + wait_all;
        EXPECT_EQ(small.run(), "race");
        small.work = product + commit + wait_all + "setp.eq.u32 %p3, %r0, 0;\n@%p3 " + overwrite;
        EXPECT_EQ(small.run(), "");
    }
}

TEST(Wgmma, WarpgroupsMustBeWholeAndAgree)
{
    Small small;
    small.work = begin + product_text(8, "%rd10", plain) + finish;
    small.threads = 96;
    EXPECT_EQ(small.run(), "wgmma-warpgroup");
    small = Small{};
    small.work = begin + "setp.gt.u32 %p3, %r0, 95;\n@%p3 bra SKIP;\n" + product_text(8, "%rd10", plain) +
                 finish + "SKIP:\n";
    EXPECT_EQ(small.run(), "deadlock");
    EXPECT_NE(small.message.find("not all four warps"), std::string::npos) << small.message;
    small.work = begin + "setp.gt.u32 %p1, %r0, 95;\n" + product_text(8, "%rd10", plain) + finish;
    EXPECT_EQ(small.run(), "wgmma-divergence");
    small.work = begin + "cvt.u64.u32 %rd14, %r0;\nadd.u64 %rd10, %rd10, %rd14;\n" +
                 product_text(8, "%rd10", plain) + finish;
    EXPECT_EQ(small.run(), "wgmma-divergence");
    small.work = begin + "add.u64 %rd10, %rd10, 8192;\n" + product_text(8, "%rd10", plain) + finish;
    EXPECT_EQ(small.run(), "out-of-bounds");
}

TEST(Wgmma, RefusesWhatItDoesNotKnow)
{
    Small small;
    for (std::string text :
         {"wgmma.mma_async.sync.aligned.m64n8k16.f32.tf32.tf32 {%d0, %d1, %d2, %d3}, %rd10, %rd11, "
          "%p1, 1, 1;",
          "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%d0, %d1, %d2, %d3}, %rd10, %rd11, %p1;",
          "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %rd10, %rd11, "
          "%p1, 1, 1, 0, 0;",
          "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%d0, %d1, %d2, %d3}, %rd10, %rd11, "
          "%p1, 1, 1, 0, 0;",
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2}, %rd10, %rd11, "
          "%p1, 1, 1, 0, 0;",
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %rd10, %rd11, "
          "%p1, 2, 1, 0, 0;",
          "wgmma.wait_group.sync.aligned %r0;"}) {
        small.work = text;
        EXPECT_EQ(small.run(), "refused") << text;
    }
}

}  // namespace
}  // namespace emu
