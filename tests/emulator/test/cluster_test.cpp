// Clusters: barriers, other CTAs' shared memory, stores that count their bytes; and register pools.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

const char* cluster_sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

std::string exchange_kernel(const std::string& sync, const std::string& last)
{
    // Every thread writes into the next CTA, and reads its own.
    return R"(
.shared .align 8 .b64 data[32];
mov.u32 %r2, data;
mad.lo.u32 %r2, %r0, 8, %r2;
mov.u32 %r3, %cluster_ctarank;
add.u32 %r4, %r3, 1;
and.b32 %r4, %r4, 3;
mapa.shared::cluster.u32 %r5, %r2, %r4;
getctarank.shared::cluster.u32 %r6, %r5;
mad.lo.u32 %r7, %r3, 100, %r6;
)" + sync + "st.shared::cluster.u32 [%r5], %r7;\n" +
           sync + R"(
ld.shared.u32 %r8, [%r2];
mad.lo.u32 %r9, %r1, 32, %r0;
mul.wide.u32 %rd5, %r9, 4;
add.u64 %rd5, %rd5, %rd0;
st.global.u32 [%rd5], %r8;
)" + last;
}

TEST(Cluster, ThreadsWriteIntoOtherCtas)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        Device device(90, seed);
        uint64_t out = device.put(std::vector<uint32_t>(256));
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 1, exchange_kernel(cluster_sync, "")), shape_of(8, 32, 4),
                             {out}),
                  "")
            << device.message();
        auto got = device.get<uint32_t>(out, 256);
        for (uint32_t i = 0; i < 256; i++)
            ASSERT_EQ(got[i], (i / 32 + 3) % 4 * 100 + i / 32 % 4);
    }
}

TEST(Cluster, WithoutTheBarrierItIsARace)
{
    std::string relaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n";
    for (const std::string& sync : {std::string(""), relaxed}) {
        Device device(90, 4);
        uint64_t out = device.put(std::vector<uint32_t>(128));
        std::string reports =
            device.run(ptx_kernel("sm_90", 1, exchange_kernel(sync, "")), shape_of(4, 32, 4), {out});
        EXPECT_NE(reports.find("race"), std::string::npos) << reports;
    }
}

TEST(Cluster, ExitedThreadsAreNotWaitedFor)
{
    std::string body =
        "setp.gt.u32 %p1, %r0, 40;\n@%p1 exit;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
    for (uint64_t seed = 1; seed <= 10; seed++) {
        Device device(90, seed);
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 0, body), shape_of(4, 96, 2), {}), "") << device.message();
    }
}

TEST(Cluster, ReportsMisuse)
{
    Device device(90);
    EXPECT_EQ(device.run(ptx_kernel("sm_90", 0, "barrier.cluster.wait.aligned;"), shape_of(2, 32, 2), {}),
              "cluster-barrier");
    EXPECT_EQ(device.run(ptx_kernel("sm_90", 0, "barrier.cluster.arrive;\nbarrier.cluster.arrive;"),
                         shape_of(1, 32, 1), {}),
              "cluster-barrier");
    std::string waits = "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra WAIT;\nW: bra W2;\nW2: bar.sync 1, 64;\n"
                        "WAIT: barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
    EXPECT_EQ(device.run(ptx_kernel("sm_90", 0, waits), shape_of(2, 32, 2), {}), "deadlock");
    EXPECT_NE(device.message().find("cluster barrier"), std::string::npos) << device.message();
    EXPECT_EQ(
        device.run(ptx_kernel("sm_90", 0, "mapa.shared::cluster.u32 %r2, %r3, 2;"), shape_of(2, 32, 2), {}),
        "cluster-rank");
    std::string apart =
        "setp.ne.u32 %p1, %r0, 31;\nbarrier.cluster.arrive.aligned;\n@%p1 bar.warp.sync -1;\n"
        "barrier.cluster.wait.aligned;\n";
    EXPECT_EQ(device.run(ptx_kernel("sm_90", 0, apart), shape_of(2, 32, 2), {}), "divergence");
}

TEST(Cluster, RemoteStoresCountTheirBytes)
{
    // Rank 0 sends 16 bytes from each of 32 threads to rank 1 and adds 3 to a counter there.
    std::string body = R"(
.shared .align 16 .b8 data[512];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 sum;
mov.u32 %r2, data;
mov.u32 %r3, bar;
mov.u32 %r4, sum;
setp.eq.u32 %p0, %r0, 0;
@%p0 st.shared.u32 [%r4], 5;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 640;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r5, %cluster_ctarank;
setp.eq.u32 %p1, %r5, 1;
mad.lo.u32 %r6, %r0, 16, %r2;
@%p1 bra RECEIVE;
mapa.shared::cluster.u32 %r7, %r6, 1;
mapa.shared::cluster.u32 %r8, %r3, 1;
mapa.shared::cluster.u32 %r9, %r4, 1;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r7], {%r0, %r0, %r0, %r8}, [%r8];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r9], 3, [%r8];
bra END;
RECEIVE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra RECEIVE;
ld.shared.u32 %r10, [%r6+8];
ld.shared.u32 %r11, [%r4];
add.u32 %r10, %r10, %r11;
mul.wide.u32 %rd5, %r0, 4;
add.u64 %rd5, %rd5, %rd0;
st.global.u32 [%rd5], %r10;
END: barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)";
    for (uint64_t seed = 1; seed <= 10; seed++) {
        Device device(90, seed);
        uint64_t out = device.put(std::vector<uint32_t>(32));
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 1, body), shape_of(2, 32, 2), {out}), "")
            << device.message();
        auto got = device.get<uint32_t>(out, 32);
        for (uint32_t i = 0; i < 32; i++)
            ASSERT_EQ(got[i], i + 5 + 96);
    }
}

// Rank 0 uses the shared memory of rank 1, which ends without waiting for that, or after a last barrier.
// The rank that is late decides which comes first.
TEST(Cluster, NobodyMayExitWhileAPeerUsesItsMemory)
{
    const auto reports = [](int late, const std::string& use, const std::string& last) {
        std::string body = R"(
.shared .align 16 .b8 data[64];
.shared .align 8 .b64 bar;
mov.u32 %r2, data;
mov.u32 %r3, bar;
setp.eq.u32 %p0, %r0, 0;
@%p0 st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
fence.proxy.async.shared::cta;
mapa.shared::cluster.u32 %r4, %r2, 1;
mapa.shared::cluster.u32 %r5, %r3, 1;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r7, 0;
setp.ne.u32 %p1, %r1, )" + std::to_string(late) +
                           R"(;
@%p1 bra USE;
DELAY: add.u32 %r7, %r7, 1;
setp.lt.u32 %p2, %r7, 5000;
@%p2 bra DELAY;
USE: mad.lo.u32 %r6, %r1, 32, %r0;
setp.ne.u32 %p1, %r6, 0;
@%p1 bra END;
)" + use + "\nEND:\n" + last;
        Device device(90, 1);
        return device.run(ptx_kernel("sm_90", 1, body), shape_of(2, 32, 2),
                          {device.put(std::vector<uint8_t>(64))});
    };
    const std::string bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+16], "
                             "[%rd0], 16, [%r5];";
    for (const int late : {0, 1}) {
        for (const char* use : {"ld.shared::cluster.u32 %r8, [%r4];", "st.shared::cluster.u32 [%r4], %r7;",
                                "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];"}) {
            EXPECT_EQ(reports(late, use, ""), "exited-peer") << use << late;
            EXPECT_EQ(reports(late, use, cluster_sync), "") << use << late;
        }
        EXPECT_EQ(reports(late, bulk, ""), "exited-peer") << late;
    }
}

// Rank 0 initialises a barrier and writes data, rank 1 arrives there and reads the data.
TEST(Cluster, InitialisationsArePublishedAndNothingElse)
{
    const auto reports = [](const std::string& init, const std::string& sync, const std::string& use) {
        std::string body = R"(
.shared .align 16 .b8 data[512];
.shared .align 8 .b64 bar;
mov.u32 %r2, data;
mov.u32 %r3, bar;
mov.u32 %r4, %cluster_ctarank;
mad.lo.u32 %r5, %r4, 32, %r0;
setp.eq.u32 %p0, %r5, 0;
setp.eq.u32 %p1, %r5, 32;
mapa.shared::cluster.u32 %r6, %r2, 0;
mapa.shared::cluster.u32 %r7, %r3, 0;
@%p0 st.shared.u32 [%r2], 5;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
)" + init + "\nbarrier.cluster.arrive" +
                           sync + ".aligned;\nbarrier.cluster.wait.aligned;\n" + use +
                           "\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
        Device device(90, 2);
        return device.run(ptx_kernel("sm_90", 1, body), shape_of(2, 32, 2),
                          {device.put(std::vector<uint8_t>(512))});
    };
    const std::string fence = "fence.mbarrier_init.release.cluster;";
    const std::string arrive = "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];";
    const std::string read = "@%p1 ld.shared::cluster.u32 %r8, [%r6];";
    EXPECT_EQ(reports(fence, ".relaxed", arrive), "");
    EXPECT_EQ(reports("", ".relaxed", arrive), "race");
    EXPECT_EQ(reports("", "", arrive), "");
    EXPECT_EQ(reports(fence, ".relaxed", read), "race");
    EXPECT_EQ(reports("fence.acq_rel.cluster;", ".relaxed", read), "");

    const std::string load = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;\n"
                             "@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                             "[%r2+128], [%rd0], 128, [%r3];\n@!%p0 bra END;\n"
                             "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n"
                             "@!%p2 bra WAIT;\nEND:";
    EXPECT_EQ(reports(fence, "", load), "");
    EXPECT_EQ(reports("fence.proxy.async.shared::cta;", "", load), "");
    EXPECT_EQ(reports("", "", load), "missing-init-fence");
    EXPECT_EQ(reports("@%p1 " + fence, "", load), "missing-init-fence") << "a fence of another thread";
    const std::string store = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16;\n"
                              "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;";
    const std::string fill = "@%p0 st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};\n";
    EXPECT_EQ(reports(fill + fence, "", store), "missing-proxy-fence");
    EXPECT_EQ(reports(fill + "fence.proxy.async.shared::cta;", "", store), "");
}

TEST(Registers, MoveBetweenWarpgroups)
{
    std::string body = R"(
setp.gt.u32 %p0, %r0, 127;
@%p0 bra MORE;
setmaxnreg.dec.sync.aligned.u32 24;
bra END;
MORE: setmaxnreg.inc.sync.aligned.u32 AMOUNT;
END:
)";
    for (auto [amount, expected] : {std::pair{"240", ""}, std::pair{"256", "deadlock"}}) {
        std::string text = body;
        text.replace(text.find("AMOUNT"), 6, amount);
        std::string module = ptx_kernel("sm_90a", 0, text);
        module.replace(module.find(")\n{"), 1, ")\n.maxntid 384, 1, 1");
        Device device(90);
        EXPECT_EQ(device.run(module, shape_of(1, 384), {}), expected) << device.message();
    }
}

}  // namespace
}  // namespace emu
