// Divergence, barriers, exchange between lanes, deadlocks.
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace emu {
namespace {

constexpr char store_r9[] =
    "mul.wide.u32 %rd10, %r0, 4;\nadd.s64 %rd10, %rd0, %rd10;\nst.global.u32 [%rd10], %r9;\n";

std::vector<uint32_t> results(const std::string& body, uint32_t threads, std::string* outcome = nullptr,
                              int cc = 90, uint64_t seed = 1)
{
    Device device(cc, seed);
    const uint64_t out = device.put(std::vector<uint32_t>(threads));
    const std::string target = "sm_" + std::to_string(cc) + (cc >= 90 ? "a" : "");
    const std::string kinds =
        device.run(ptx_kernel(target, 1, body + "\n" + store_r9), shape_of(1, threads), {out});
    if (outcome)
        *outcome = kinds;
    else
        EXPECT_EQ(kinds, "") << device.message();
    return device.get<uint32_t>(out, threads);
}

// The Collatz length of every thread number: loops of different lengths with a branch inside.
TEST(Control, DivergentLoops)
{
    const auto steps = results(R"(
        mov.u32 %r9, 0;
        add.s32 %r2, %r0, 1;
    LOOP:
        setp.eq.u32 %p1, %r2, 1;
        @%p1 bra DONE;
        add.s32 %r9, %r9, 1;
        and.b32 %r3, %r2, 1;
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra EVEN;
        mad.lo.s32 %r2, %r2, 3, 1;
        bra LOOP;
    EVEN:
        shr.u32 %r2, %r2, 1;
        bra.uni LOOP;
    DONE:)",
                               100, nullptr);
    for (uint32_t i = 0; i < 100; ++i) {
        uint32_t expected = 0;
        for (uint32_t n = i + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
            ++expected;
        EXPECT_EQ(steps[i], expected);
    }
}

TEST(Control, IndexedBranch)
{
    const auto values = results(R"(
        and.b32 %r2, %r0, 3;
        TARGETS: .branchtargets A, B, A, C;
        brx.idx %r2, TARGETS;
    A:  mov.u32 %r9, 10;
        bra END;
    B:  mov.u32 %r9, 20;
        bra END;
    C:  mov.u32 %r9, 30;
    END:)",
                                64);
    for (uint32_t i = 0; i < 64; ++i)
        EXPECT_EQ(values[i], (std::vector<uint32_t>{10, 20, 10, 30})[i % 4]);
}

// One lane does something slow; the others wait for it at the shuffle, wherever the compiler put the code.
TEST(Control, LanesMeetAgainForCollectives)
{
    for (uint64_t seed = 1; seed < 6; ++seed) {
        const auto values = results(R"(
            mov.u32 %r9, %r0;
            setp.eq.u32 %p1, %r0, 5;
            @%p1 bra FAR;
        BACK:
            shfl.sync.bfly.b32 %r9, %r9, 1, 31, -1;
            bar.sync 0;
            bra STORE;
        FAR:
            mov.u32 %r2, 200;
        SPIN:
            sub.s32 %r2, %r2, 1;
            setp.ne.u32 %p2, %r2, 0;
            @%p2 bra SPIN;
            mov.u32 %r9, 500;
            bra BACK;
        STORE:)",
                                    64, nullptr, 90, seed);
        for (uint32_t i = 0; i < 64; ++i)
            EXPECT_EQ(values[i], i == 4 ? 500 : i ^ 1);
    }
}

// A lock that lanes of one warp take from one another: whoever holds it must get to run.
TEST(Control, LanesOfAWarpCanWaitForEachOther)
{
    const auto values = results(R"(
        .shared .align 4 .b32 lock;
        .shared .align 4 .b32 sum;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 st.shared.u32 [lock], 0;
        @%p1 st.shared.u32 [sum], 0;
        bar.sync 0;
    TAKE:
        atom.acquire.cta.shared.cas.b32 %r2, [lock], 0, 1;
        setp.ne.u32 %p2, %r2, 0;
        @%p2 bra TAKE;
        ld.shared.u32 %r3, [sum];
        add.s32 %r3, %r3, 1;
        st.shared.u32 [sum], %r3;
        atom.release.cta.shared.exch.b32 %r4, [lock], 0;
        bar.warp.sync -1;
        bar.sync 0;
        ld.shared.u32 %r9, [sum];)",
                                64);
    EXPECT_EQ(values, std::vector<uint32_t>(64, 64));
}

TEST(Control, NamedBarriers)
{
    // Warps 0 and 1 write, arrive and go on; warps 2 and 3 wait for them on barrier 3.
    const auto values = results(R"(
        .shared .align 4 .b8 box[256];
        mov.u32 %r2, box;
        setp.ge.u32 %p1, %r0, 64;
        @%p1 bra READ;
        shl.b32 %r3, %r0, 2;
        add.s32 %r3, %r3, %r2;
        st.shared.u32 [%r3], %r0;
        bar.arrive 3, 128;
        mov.u32 %r9, 1;
        bra END;
    READ:
        bar.sync 3, 128;
        sub.s32 %r4, 127, %r0;
        shl.b32 %r3, %r4, 2;
        add.s32 %r3, %r3, %r2;
        ld.shared.u32 %r9, [%r3];
    END:)",
                                128);
    for (uint32_t i = 0; i < 128; ++i)
        EXPECT_EQ(values[i], i < 64 ? 1 : 127 - i);
}

TEST(Control, BarrierReductions)
{
    const auto values = results(R"(
        setp.lt.u32 %p1, %r0, 70;
        bar.red.popc.u32 %r2, 0, %p1;
        bar.red.and.pred %p2, 1, %p1;
        bar.red.or.pred %p3, 2, %p1;
        selp.b32 %r3, 1000, 0, %p2;
        selp.b32 %r4, 2000, 0, %p3;
        add.s32 %r9, %r2, %r3;
        add.s32 %r9, %r9, %r4;)",
                                96);
    EXPECT_EQ(values, std::vector<uint32_t>(96, 2070));
}

TEST(Control, BarriersDoNotWaitForTheDead)
{
    const auto values = results(R"(
        mov.u32 %r9, 7;
        setp.lt.u32 %p1, %r0, 40;
        @%p1 bra END;
        bar.sync 0;
    END:)",
                                128);
    EXPECT_EQ(values, std::vector<uint32_t>(128, 7));
}

TEST(Control, ShuffleModes)
{
    const std::pair<const char*, int (*)(int)> modes[] = {
        {"shfl.sync.up.b32 %r9|%p1, %r0, 3, 0, -1;", [](int i) { return i >= 3 ? i - 3 : i + 100; }},
        {"shfl.sync.down.b32 %r9|%p1, %r0, 3, 31, -1;", [](int i) { return i + 3 < 32 ? i + 3 : i + 100; }},
        {"shfl.sync.bfly.b32 %r9|%p1, %r0, 9, 31, -1;", [](int i) { return i ^ 9; }},
        {"shfl.sync.idx.b32 %r9|%p1, %r0, 2, 0x181f, -1;", [](int i) { return i / 8 * 8 + 2; }},
        {"shfl.sync.down.b32 %r9|%p1, %r0, 3, 0x181f, -1;",
         [](int i) { return i % 8 < 5 ? i + 3 : i + 100; }}};
    for (const auto& [text, expected] : modes) {
        const auto values = results(std::string(text) + "\n@!%p1 add.s32 %r9, %r9, 100;", 32);
        for (int i = 0; i < 32; ++i)
            EXPECT_EQ(values[i], static_cast<uint32_t>(expected(i))) << text << i;
    }
}

TEST(Control, VotesMatchesReductions)
{
    const auto values = results(R"(
        setp.lt.u32 %p1, %r0, 5;
        vote.sync.ballot.b32 %r2, %p1, -1;
        vote.sync.any.pred %p2, %p1, -1;
        vote.sync.uni.pred %p3, %p1, -1;
        and.b32 %r3, %r0, 3;
        match.any.sync.b32 %r4, %r3, -1;
        redux.sync.add.s32 %r5, %r0, -1;
        redux.sync.max.u32 %r6, %r3, -1;
        elect.sync %r7|%p4, -1;
        selp.b32 %r8, 1, 0, %p2;
        @%p3 add.s32 %r8, %r8, 2;
        @%p4 add.s32 %r8, %r8, 4;
        xor.b32 %r9, %r2, %r4;
        add.s32 %r9, %r9, %r5;
        add.s32 %r9, %r9, %r6;
        add.s32 %r9, %r9, %r7;
        add.s32 %r9, %r9, %r8;)",
                                32);
    for (uint32_t i = 0; i < 32; ++i)
        EXPECT_EQ(values[i], (0x1fu ^ 0x11111111u << i % 4) + 496 + 3 + 0 + 1 + (i == 0 ? 4 : 0));
}

// Tiles of 16 lanes with masks of their own, in one instruction or apart.
TEST(Control, GroupsOfLanesInOneWarp)
{
    const auto values = results(R"(
        and.b32 %r2, %r0, 16;
        shl.b32 %r3, 0xffff, %r2;
        redux.sync.add.u32 %r9, %r0, %r3;
        setp.lt.u32 %p1, %r0, 20;
        @%p1 bar.warp.sync %r3;
        @!%p1 bar.warp.sync %r3;
        shfl.sync.idx.b32 %r4, %r0, 3, 0x101f, %r3;
        add.s32 %r9, %r9, %r4;)",
                                32);
    for (uint32_t i = 0; i < 32; ++i)
        EXPECT_EQ(values[i], i < 16 ? 120 + 3 : 376 + 19);
}

TEST(Control, ReportsDivergence)
{
    std::string outcome;
    results("mov.u32 %r9, 0;\nsetp.lt.u32 %p1, %r0, 8;\n@%p1 bar.sync 0;", 32, &outcome);
    EXPECT_EQ(outcome, "divergence");
    results("mov.u32 %r9, 0;\nsetp.lt.u32 %p1, %r0, 8;\n@%p1 shfl.sync.idx.b32 %r9, %r9, 0, 31, -1;", 32,
            &outcome);
    EXPECT_EQ(outcome, "divergence");
    results("mov.u32 %r9, 0;\nsetp.lt.u32 %p1, %r0, 8;\n@%p1 shfl.sync.idx.b32 %r9, %r9, 9, 31, 0xff;", 32,
            &outcome);
    EXPECT_EQ(outcome, "shuffle-inactive");
}

TEST(Control, DeadlocksSayWhoWaits)
{
    Device device(80);
    const std::string body =
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra END;\nA:\nbar.sync 2, 64;\nEND:\n";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 0, body), shape_of(1, 64), {}), "deadlock");
    EXPECT_NE(device.message().find("for barrier 1: 32 of 64 threads"), std::string::npos)
        << device.message();
    EXPECT_NE(device.message().find("for barrier 2: 32 of 64 threads"), std::string::npos)
        << device.message();
}

TEST(Control, SpinningForEverIsADeadlock)
{
    Device device(80);
    const uint64_t flag = device.put(std::vector<uint32_t>{0});
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 1,
                                    "SPIN:\nld.volatile.global.u32 %r2, [%rd0];\nsetp.eq.u32 %p1, %r2, 0;\n"
                                    "@%p1 bra SPIN;"),
                         shape_of(1, 32), {flag}),
              "deadlock");
}

TEST(Control, SpecialRegisters)
{
    Device device(90);
    const uint64_t out = device.put(std::vector<uint32_t>(8 * 6 * 8));
    Launch shape = shape_of(1, 1, 1, 64);
    shape.grid = {4, 6, 1};
    shape.cluster = {2, 1, 1};
    shape.block = {2, 3, 4};
    EXPECT_EQ(device.run(ptx_kernel("sm_90a", 1, R"(
        mov.u32 %r2, %tid.y;
        mov.u32 %r3, %tid.z;
        or.b32 %r4, %r2, %r3;
        or.b32 %r4, %r4, %r0;
        setp.ne.u32 %p1, %r4, 0;
        @%p1 exit;
        mov.u32 %r5, %ctaid.y;
        mad.lo.s32 %r5, %r5, 4, %r1;
        mul.wide.u32 %rd1, %r5, 32;
        add.s64 %rd1, %rd0, %rd1;
        mov.u32 %r6, %cluster_ctarank;
        mov.u32 %r7, %clusterid.x;
        mov.u32 %r8, %nclusterid.x;
        mov.u32 %r9, %ntid.z;
        st.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9};
        mov.u32 %r6, %dynamic_smem_size;
        mov.u32 %r7, %laneid;
        mov.u32 %r8, %lanemask_gt;
        mov.u32 %r9, %cluster_nctarank;
        st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r9};)"),
                         shape, {out}),
              "")
        << device.message();
    const auto values = device.get<uint32_t>(out, 24 * 8);
    for (uint32_t cta = 0; cta < 24; ++cta)
        EXPECT_EQ(std::vector<uint32_t>(values.begin() + cta * 8, values.begin() + cta * 8 + 8),
                  (std::vector<uint32_t>{cta % 2, cta % 4 / 2, 2, 4, 64, 0, 0xfffffffe, 2}));
}

}  // namespace
}  // namespace emu
