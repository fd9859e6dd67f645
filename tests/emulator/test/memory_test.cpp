// Loads, stores, atomics, spaces and bounds.
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace emu {
namespace {

TEST(Memory, WidthsAndSigns)
{
    Device device(80);
    const uint64_t in = device.put(std::vector<uint8_t>{0x80, 0x01, 0xff, 0x7f, 0x00, 0x80, 0xfe, 0xff});
    const uint64_t out = device.put(std::vector<uint64_t>(8));
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, R"(
        ld.global.s8 %r2, [%rd0];
        ld.global.u8 %r3, [%rd0];
        ld.global.s16 %rd4, [%rd0+4];
        ld.global.v2.u16 {%h0, %h1}, [%rd0+4];
        st.global.u32 [%rd1], %r2;
        st.global.u32 [%rd1+8], %r3;
        st.global.u64 [%rd1+16], %rd4;
        st.global.v2.b16 [%rd1+24], {%h1, %h0};
        st.global.u8 [%rd1+32], %r2;
        ld.global.s8 %h2, [%rd0];
        cvt.u32.u16 %r4, %h2;
        st.global.u32 [%rd1+40], %r4;
        )"),
                         shape_of(1, 1), {in, out}),
              "")
        << device.message();
    EXPECT_EQ(device.get<uint64_t>(out, 6),
              (std::vector<uint64_t>{0xffffff80, 0x80, 0xffffffffffff8000, 0x8000fffe, 0x80, 0xff80}));
}

TEST(Memory, VectorsOfEveryLength)
{
    Device device(100);
    const uint64_t in = device.put(std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0});
    const uint64_t aligned = (in + 31) / 32 * 32;
    const uint64_t out = device.put(std::vector<uint32_t>(16));
    ASSERT_EQ(aligned, in);
    EXPECT_EQ(device.run(ptx_kernel("sm_100a", 2, R"(
        ld.global.v8.b32 {%r2, %r3, %r4, %r5, %r6, _, %r8, %r9}, [%rd0];
        st.global.v4.u32 [%rd1], {%r9, %r8, %r6, %r5};
        st.global.v2.u64 [%rd1+32], {%rd0, 5};
        )"),
                         shape_of(1, 1), {in, out}),
              "")
        << device.message();
    EXPECT_EQ(device.get<uint32_t>(out, 4), (std::vector<uint32_t>{8, 7, 5, 4}));
    EXPECT_EQ(device.get<uint64_t>(out, 6)[4], in);
    EXPECT_EQ(device.get<uint64_t>(out, 6)[5], 5u);
}

// A vector load may reach over the end of its object where the pragma says that those bytes are not used.
TEST(Memory, UnusedBytesAreNotRead)
{
    Device device(80);
    const uint64_t in = device.put(std::vector<uint32_t>{1, 2, 3});
    const uint64_t out = device.put(std::vector<uint32_t>(4));
    const std::string load =
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0];\nst.global.v2.u32 [%rd1], {%r2, %r4};\n";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, load), shape_of(1, 1), {in, out}), "out-of-bounds");
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, ".pragma \"used_bytes_mask 0xfff\";\n" + load),
                         shape_of(1, 1), {in, out}),
              "");
    EXPECT_EQ(device.get<uint32_t>(out, 2), (std::vector<uint32_t>{1, 3}));
}

// Every thread adds to one place; the sum and the set of values seen are known, whatever the order.
TEST(Memory, AtomicsAreAtomic)
{
    Device device(80, 5);
    const uint64_t cells =
        device.put(std::vector<uint32_t>{0, 0xffffffff, 0, 0, 0, std::bit_cast<uint32_t>(0.5f), 7, 0});
    const uint64_t seen = device.put(std::vector<uint32_t>(256));
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, R"(
        mad.lo.s32 %r2, %r1, 64, %r0;
        atom.global.add.u32 %r3, [%rd0], 1;
        mul.wide.u32 %rd2, %r3, 4;
        add.s64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], 1;
        red.global.min.u32 [%rd0+4], %r2;
        red.global.max.s32 [%rd0+8], %r2;
        atom.global.inc.u32 %r4, [%rd0+12], 99;
        red.relaxed.gpu.global.xor.b32 [%rd0+16], %r2;
        red.global.add.f32 [%rd0+20], 0f3F800000;
        atom.global.cas.b32 %r5, [%rd0+24], 7, %r2;
        )"),
                         shape_of(4, 64), {cells, seen}),
              "")
        << device.message();
    const auto c = device.get<uint32_t>(cells, 8);
    EXPECT_EQ(c[0], 256u);
    EXPECT_EQ(device.get<uint32_t>(seen, 256), std::vector<uint32_t>(256, 1));
    EXPECT_EQ(c[1], 0u);
    EXPECT_EQ(c[2], 255u);
    EXPECT_EQ(c[3], 256u % 100);
    EXPECT_EQ(c[4], 0u);
    EXPECT_EQ(std::bit_cast<float>(c[5]), 256.5f);
    EXPECT_LT(c[6], 256u);
}

TEST(Memory, PackedAndVectorAtomics)
{
    Device device(90);
    const uint64_t cells =
        device.put(std::vector<uint32_t>{0x3c003c00, 0x3f803f80, 0x3f800000, 0x40000000, 0, 0, 0, 0});
    EXPECT_EQ(device.run(ptx_kernel("sm_90a", 1, R"(
        mov.b32 %r2, 0x40003c00;
        red.global.add.noftz.f16x2 [%rd0], %r2;
        mov.b32 %r3, 0x40003f80;
        red.global.add.noftz.bf16x2 [%rd0+4], %r3;
        mov.f32 %f1, 0f3F800000;
        red.global.add.v2.f32 [%rd0+8], {%f1, %f1};
        )"),
                         shape_of(1, 1), {cells}),
              "")
        << device.message();
    EXPECT_EQ(device.get<uint32_t>(cells, 4),
              (std::vector<uint32_t>{0x42004000, 0x40404000, 0x40000000, 0x40400000}));
}

TEST(Memory, SpacesAndGenericAddresses)
{
    Device device(90);
    const uint64_t out = device.put(std::vector<uint32_t>(64));
    EXPECT_EQ(device.run(R"(.version 9.0
        .target sm_90a
        .address_size 64
        .global .align 4 .u32 table[4] = {10, 20, 30, 40};
        .const .align 8 .u64 where = table+8;
        .visible .entry k(.param .u64 p0)
        {
            .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<9>;
            .shared .align 4 .b8 tile[256];
            .local .align 4 .b8 frame[16];
            ld.param.u64 %rd0, [p0];
            mov.u32 %r0, %tid.x;
            mov.u32 %r1, tile;
            shl.b32 %r2, %r0, 2;
            add.s32 %r1, %r1, %r2;
            st.shared.u32 [%r1], %r0;
            bar.sync 0;
            cvt.u64.u32 %rd1, %r1;
            cvta.shared.u64 %rd1, %rd1;
            ld.u32 %r3, [%rd1];
            isspacep.shared %p1, %rd1;
            isspacep.global %p2, %rd0;
            selp.b32 %r4, 100, 0, %p1;
            selp.b32 %r5, 1000, 0, %p2;
            st.local.u32 [frame+8], %r0;
            mov.u64 %rd3, frame;
            cvta.local.u64 %rd4, %rd3;
            ld.u32 %r6, [%rd4+8];
            ld.const.u64 %rd5, [where];
            ld.global.u32 %r7, [%rd5];
            add.s32 %r8, %r3, %r4;
            add.s32 %r8, %r8, %r5;
            add.s32 %r8, %r8, %r6;
            add.s32 %r8, %r8, %r7;
            mul.wide.u32 %rd6, %r0, 4;
            add.s64 %rd6, %rd0, %rd6;
            st.global.u32 [%rd6], %r8;
            ret;
        })",
                         shape_of(1, 64), {out}),
              "")
        << device.message();
    for (uint32_t i = 0; i < 64; ++i)
        EXPECT_EQ(device.get<uint32_t>(out, 64)[i], 2 * i + 1130);
}

TEST(Memory, FaultsNameThePlace)
{
    const std::pair<const char*, const char*> cases[] = {
        {"ld.global.u32 %r2, [%rd0+64];", "out-of-bounds"},
        {"ld.global.u32 %r2, [%rd0+-4];", "out-of-bounds"},
        {"ld.global.u64 %rd2, [%rd0+60];", "misaligned"},
        {"ld.global.u64 %rd2, [%rd0+64];", "out-of-bounds"},
        {"st.shared.u32 [%r0], %r1;", "out-of-bounds"},
        {"ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%rd0+8];", "misaligned"},
        {"ld.param.u64 %rd2, [p0+8];", "out-of-bounds"},
        {"mov.u64 %rd2, 0; st.u32 [%rd2], %r0;", "out-of-bounds"},
        {"trap;", "trap"}};
    for (const auto& [text, kind] : cases) {
        Device device(80);
        const uint64_t memory = device.put(std::vector<uint32_t>(16));
        const std::string module = ptx_kernel("sm_80", 1, text);
        EXPECT_EQ(device.run(module, shape_of(1, 1), {memory}), kind) << text;
        EXPECT_NE(device.message().find(place_of(module, text)), std::string::npos) << device.message();
        EXPECT_NE(device.message().find("warp 0"), std::string::npos) << device.message();
    }
}

// A writer publishes data by a flag; without the release there is a race.
TEST(Memory, ReleaseAndAcquireOrder)
{
    const auto message = [](const std::string& write, const std::string& read) {
        return ".shared .align 8 .b32 data;\n.shared .align 8 .b32 flag;\n"
               "setp.eq.u32 %p1, %r0, 64;\nsetp.eq.u32 %p2, %r0, 0;\n"
               "@%p2 st.shared.u32 [flag], 0;\nbar.sync 0;\n"
               "@%p2 st.shared.u32 [data], 42;\n@%p2 " +
               write + "\n@!%p1 exit;\nSPIN:\n" + read +
               "\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra SPIN;\nld.shared.u32 %r3, [data];\n";
    };
    const auto outcome = [&](const std::string& write, const std::string& read) {
        Device device(90, 3);
        return device.run(ptx_kernel("sm_90a", 0, message(write, read)), shape_of(1, 96), {});
    };
    EXPECT_EQ(outcome("st.release.cta.shared.u32 [flag], 1;", "ld.acquire.cta.shared.u32 %r2, [flag];"),
              "");
    EXPECT_EQ(outcome("fence.acq_rel.cta;\n@%p2 st.relaxed.cta.shared.u32 [flag], 1;",
                      "ld.relaxed.cta.shared.u32 %r2, [flag];\nfence.acq_rel.cta;"),
              "");
    EXPECT_EQ(outcome("st.relaxed.cta.shared.u32 [flag], 1;", "ld.acquire.cta.shared.u32 %r2, [flag];"),
              "race");
    EXPECT_EQ(outcome("st.release.cta.shared.u32 [flag], 1;", "ld.relaxed.cta.shared.u32 %r2, [flag];"),
              "race");
}

// The same between the CTAs of a cluster, where the scope must reach the other.
TEST(Memory, ScopesReachTheOtherThreadOrOrderNothing)
{
    const auto outcome = [](const std::string& write, const std::string& read) {
        const std::string body = R"(
.shared .align 8 .b32 data;
.shared .align 8 .b32 flag;
mov.u32 %r5, data;
mov.u32 %r6, flag;
mapa.shared::cluster.u32 %r5, %r5, 0;
mapa.shared::cluster.u32 %r6, %r6, 0;
mad.lo.u32 %r4, %r1, 32, %r0;
setp.eq.u32 %p1, %r4, 0;
setp.eq.u32 %p2, %r4, 32;
@%p1 st.shared.u32 [flag], 0;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@%p1 st.shared.u32 [data], 42;
@%p1 )" + write + "\n@!%p2 bra END;\nSPIN:\n" +
                                 read + R"(
setp.eq.u32 %p3, %r2, 0;
@%p3 bra SPIN;
ld.shared::cluster.u32 %r3, [%r5];
END:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)";
        Device device(90, 3);
        return device.run(ptx_kernel("sm_90a", 0, body), shape_of(2, 32, 2), {});
    };
    const auto store = [](const std::string& how) { return "st." + how + ".shared.u32 [flag], 1;"; };
    const auto load = [](const std::string& how) {
        return "ld." + how + ".shared::cluster.u32 %r2, [%r6];";
    };
    const auto fence = [](const std::string& scope) { return "fence.acq_rel." + scope + ";\n"; };
    EXPECT_EQ(outcome(store("release.cluster"), load("acquire.cluster")), "");
    EXPECT_EQ(outcome(store("release.gpu"), load("acquire.sys")), "");
    EXPECT_EQ(outcome(store("release.cta"), load("acquire.cluster")), "race");
    EXPECT_EQ(outcome(store("release.cluster"), load("acquire.cta")), "race");
    const std::string relaxed = "@%p1 " + store("relaxed.cluster"),
                      observed = load("relaxed.cluster") + "\n";
    EXPECT_EQ(outcome(fence("cluster") + relaxed, observed + fence("gpu")), "");
    EXPECT_EQ(outcome("membar.gl;\n" + relaxed, observed + "membar.sys;"), "");
    EXPECT_EQ(outcome("membar.cta;\n" + relaxed, observed + fence("cluster")), "race");
    EXPECT_EQ(outcome(fence("cluster") + relaxed, observed + fence("cta")), "race");
    EXPECT_EQ(outcome(fence("cluster") + "@%p1 " + store("relaxed.cta"), observed + fence("cluster")),
              "race");
}

}  // namespace
}  // namespace emu
