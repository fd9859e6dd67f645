// Races on global memory between CTAs, where they are asked for.
#include "test/map_arguments.hpp"
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

// %rd0: 4 KiB of memory, %rd1: a flag; %p0: the first thread of CTA 0, %p1: of CTA 1.
std::string reports(const std::string& body, int level = 3, int multiprocessors = 4,
                    std::string* message = nullptr)
{
    Device device(90, 3);
    device.machine().checker.configure(level);
    device.machine().config.sm_count = multiprocessors;
    const uint64_t memory = device.put(std::vector<uint32_t>(1024));
    const uint64_t flag = device.put(std::vector<uint32_t>(1));
    const std::string text = R"(
mad.lo.u32 %r2, %r1, 32, %r0;
setp.eq.u32 %p0, %r2, 0;
setp.eq.u32 %p1, %r2, 32;
mul.wide.u32 %rd10, %r2, 4;
add.u64 %rd10, %rd10, %rd0;
)" + body;
    const std::string kinds = device.run(ptx_kernel("sm_90a", 2, text), shape_of(2, 32), {memory, flag});
    if (message)
        *message = device.message();
    return kinds;
}

TEST(Global, CtasThatTouchTheSameBytesRace)
{
    EXPECT_EQ(reports("st.global.u32 [%rd10], %r2;\nld.global.u32 %r3, [%rd10];"), "");
    EXPECT_EQ(reports("ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd0];"), "");
    EXPECT_EQ(reports("@%p0 st.global.u16 [%rd0+2], 1;\n@%p1 st.global.u16 [%rd0+4], 1;"), "");
    EXPECT_EQ(reports("@%p0 st.global.u16 [%rd0+2], 1;\n@%p1 st.global.u32 [%rd0], 1;"), "race");
    EXPECT_EQ(reports("@%p0 st.global.u32 [%rd0], 1;\n@%p1 ld.global.nc.u32 %r3, [%rd0];"), "race");
    EXPECT_EQ(reports("@%p0 st.global.u32 [%rd0], 1;\n@%p1 ld.u32 %r3, [%rd0];"), "race");
    EXPECT_EQ(reports("st.global.u32 [%rd0], 1;"), "race");
    EXPECT_EQ(reports("st.global.u32 [%rd0], 1;", 2), "") << "a level that does not look";
}

TEST(Global, LanesNeedTheWarpToSynchronise)
{
    const std::string write = "@%p0 st.global.u32 [%rd0], 1;\n", read = "setp.eq.u32 %p2, %r2, 1;\n"
                                                                        "@%p2 ld.global.u32 %r3, [%rd0];";
    EXPECT_EQ(reports(write + read), "missing-syncwarp");
    EXPECT_EQ(reports(write + "bar.warp.sync 0xffffffff;\n" + read), "");
}

TEST(Global, CtasThatFollowOneAnotherRaceToo)
{
    std::string message;
    EXPECT_EQ(reports("st.global.u32 [%rd0], 1;", 3, 1, &message), "race");
    EXPECT_NE(message.find("of CTA (1, 0, 0)"), std::string::npos) << message;
    EXPECT_NE(message.find("of CTA (0, 0, 0)"), std::string::npos) << message;
    EXPECT_NE(message.find("4 bytes of global memory at 0x"), std::string::npos) << message;
}

TEST(Global, AtomicsRaceWithPlainAccessesAlone)
{
    EXPECT_EQ(reports("red.global.add.u32 [%rd0], 1;\natom.global.cas.b32 %r3, [%rd0], 1, 2;"), "");
    EXPECT_EQ(reports("st.relaxed.gpu.global.u32 [%rd0], 1;\nld.volatile.global.u32 %r3, [%rd0];"), "");
    EXPECT_EQ(reports("ld.relaxed.gpu.global.u32 %r3, [%rd0];\nld.global.u32 %r3, [%rd0];"), "");
    EXPECT_EQ(reports("@%p0 red.global.add.u32 [%rd0], 1;\n@%p1 ld.global.u32 %r3, [%rd0];"), "race");
}

// CTA 0 hands data to CTA 1 by a flag.
std::string handed_over(const std::string& write, const std::string& read)
{
    return reports("@%p0 st.global.u32 [%rd0], 1;\n" + write + "\n@!%p1 bra END;\nSPIN:\n" + read +
                   "\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra SPIN;\nld.global.u32 %r4, [%rd0];\nEND:\n");
}

TEST(Global, FlagsOrderWhatTheyReach)
{
    const std::string acquire = "ld.acquire.gpu.global.u32 %r3, [%rd1];";
    EXPECT_EQ(handed_over("@%p0 st.release.gpu.global.u32 [%rd1], 1;", acquire), "");
    EXPECT_EQ(handed_over("@%p0 red.release.gpu.global.add.u32 [%rd1], 1;", acquire), "");
    EXPECT_EQ(handed_over("@%p0 st.release.cta.global.u32 [%rd1], 1;", acquire), "race");
    EXPECT_EQ(handed_over("@%p0 st.release.cluster.global.u32 [%rd1], 1;", acquire), "race");
    EXPECT_EQ(handed_over("@%p0 st.relaxed.gpu.global.u32 [%rd1], 1;", acquire), "race");
    const std::string atomic = "@%p0 atom.global.add.u32 %r5, [%rd1], 1;";
    const std::string polled = "ld.volatile.global.u32 %r3, [%rd1];\n";
    EXPECT_EQ(handed_over("membar.gl;\n" + atomic, polled + "membar.gl;"), "");
    EXPECT_EQ(handed_over("membar.cta;\n" + atomic, polled + "membar.gl;"), "race");
    EXPECT_EQ(handed_over("membar.gl;\n" + atomic, polled), "race");
}

// The first thread of each CTA, or of CTA 0, copies; `wait` and what follows is up to the test.
TEST(Global, AsynchronousCopiesAreAccesses)
{
    const std::string shared = ".shared .align 128 .b8 smem[128];\nmov.u32 %r5, smem;\n"
                               "mad.lo.u32 %r6, %r0, 4, %r5;\nst.shared.u32 [%r6], 7;\n"
                               "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
    const std::string wait = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
    const auto bulk = [&](const std::string& guard) {
        return shared + guard + " cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r5], 128;\n" + wait;
    };
    EXPECT_EQ(reports(bulk("@%p0")), "");
    EXPECT_EQ(reports("setp.eq.u32 %p2, %r0, 0;\n" + bulk("@%p2")), "race");
    const std::string sum = shared +
                            "setp.eq.u32 %p2, %r0, 0;\n@%p2 cp.reduce.async.bulk.global.shared::cta."
                            "bulk_group.add.u32 [%rd0], [%r5], 128;\n" +
                            wait;
    EXPECT_EQ(reports(sum), "");
    EXPECT_EQ(reports(sum + "@%p1 ld.global.u32 %r3, [%rd0+64];"), "race");
    const std::string copy = "@%p1 cp.async.ca.shared.global [%r6], [%rd0], 4;\ncp.async.wait_all;\n";
    EXPECT_EQ(reports(shared + copy), "");
    EXPECT_EQ(reports(shared + "@%p0 st.global.u32 [%rd0], 1;\n" + copy), "race");
    const std::string read_back = "@%p0 ld.global.u32 %r3, [%rd0];";
    EXPECT_EQ(reports(bulk("@%p0") + read_back), "");
    std::string unfinished = bulk("@%p0");
    unfinished.replace(unfinished.find("wait_group 0"), 12, "wait_group.read 0");
    EXPECT_EQ(reports(unfinished + read_back), "race");
}

TEST(Global, BoxesAreAccessesOfTheirRows)
{
    const auto stored = [](uint32_t x, uint32_t step) {
        Device device(90, 2);
        device.machine().checker.configure(3);
        MapArguments arguments;
        arguments.type = f16_type;
        arguments.base = device.put(std::vector<uint16_t>(64 * 8));
        arguments.size[0] = 64, arguments.size[1] = 8, arguments.stride[0] = 128;
        arguments.box[0] = 8, arguments.box[1] = 8;
        const uint64_t map = device.put(std::vector<TensorMap>{arguments.map()});
        return device.run(ptx_kernel("sm_90a", 3, R"(
.shared .align 128 .b8 smem[128];
mov.u32 %r5, smem;
mad.lo.u32 %r6, %r0, 4, %r5;
st.shared.u32 [%r6], 7;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra END;
cvt.u32.u64 %r7, %rd1;
cvt.u32.u64 %r8, %rd2;
mad.lo.u32 %r7, %r1, %r8, %r7;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd0, {%r7, 0}], [%r5];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
)"),
                          shape_of(2, 32), {map, x, step});
    };
    EXPECT_EQ(stored(0, 8), "");
    EXPECT_EQ(stored(56, 8), "") << "the second lies outside";
    EXPECT_EQ(stored(0, 0), "race");
    EXPECT_EQ(stored(48, 4), "race");
}

}  // namespace
}  // namespace emu
