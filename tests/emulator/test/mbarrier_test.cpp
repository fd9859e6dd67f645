// mbarrier: phases, counts, bytes, order between threads, and misuse.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

// A barrier at shared address %r2, initialised by thread 0 for COUNT arrivals.
std::string with_barrier(int count, const std::string& body)
{
    return ".shared .align 8 .b64 bar[4];\nmov.u32 %r2, bar;\nsetp.ne.u32 %p0, %r0, 0;\n"
           "@!%p0 mbarrier.init.shared::cta.b64 [%r2], " +
           std::to_string(count) + ";\nbar.sync 0;\n" + body;
}

const char* wait_zero = R"(
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
@!%p1 bra WAIT;
)";

std::string run(const std::string& body, uint32_t threads, uint64_t seed = 1, uint64_t* out = nullptr)
{
    Device device(90, seed);
    uint64_t memory = device.put(std::vector<uint64_t>(256));
    std::string reports = device.run(ptx_kernel("sm_90", 1, body), shape_of(1, threads), {memory});
    if (out)
        *out = *reinterpret_cast<uint64_t*>(memory);
    return reports;
}

TEST(Mbarrier, OrdersWriterAndReaderUnderAnySchedule)
{
    // Warp 1 writes, arrives; warp 0 waits, reads.
    std::string body = with_barrier(32, R"(
.shared .align 4 .b32 data[32];
setp.lt.u32 %p2, %r0, 32;
mov.u32 %r3, data;
and.b32 %r4, %r0, 31;
mad.lo.u32 %r3, %r4, 4, %r3;
@%p2 bra READ;
st.shared.u32 [%r3], %r0;
mbarrier.arrive.shared::cta.b64 %rd5, [%r2];
bra END;
READ:
)" + std::string(wait_zero) + R"(
ld.shared.u32 %r5, [%r3];
mul.wide.u32 %rd6, %r4, 4;
add.u64 %rd6, %rd6, %rd0;
st.global.u32 [%rd6], %r5;
END:
)");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t first = 0;
        EXPECT_EQ(run(body, 64, seed, &first), "");
        EXPECT_EQ(first, 32u | uint64_t{33} << 32);
    }
    std::string relaxed = body;
    relaxed.replace(relaxed.find("mbarrier.arrive.shared"), 22, "mbarrier.arrive.relaxed.cta.shared");
    EXPECT_EQ(run(relaxed, 64), "race");
}

TEST(Mbarrier, StatesTellPhaseAndPendingCount)
{
    std::string body = with_barrier(3, R"(
@%p0 bra END;
mbarrier.arrive.noComplete.shared.b64 %rd5, [%r2], 2;
mbarrier.pending_count.b64 %r3, %rd5;
mbarrier.test_wait.shared.b64 %p1, [%r2], %rd5;
selp.u32 %r4, 1, 0, %p1;
mbarrier.arrive.shared.b64 %rd6, [%r2];
mbarrier.pending_count.b64 %r5, %rd6;
mbarrier.test_wait.shared.b64 %p1, [%r2], %rd6;
selp.u32 %r6, 1, 0, %p1;
shl.b32 %r4, %r4, 8;
shl.b32 %r5, %r5, 16;
shl.b32 %r6, %r6, 24;
or.b32 %r3, %r3, %r4;
or.b32 %r3, %r3, %r5;
or.b32 %r3, %r3, %r6;
st.global.u32 [%rd0], %r3;
END:
)");
    uint64_t out = 0;
    EXPECT_EQ(run(body, 32, 1, &out), "");
    EXPECT_EQ(out, 0x01010003u);  // pending 3, not done; pending 1, done
}

TEST(Mbarrier, CountsBytes)
{
    std::string body = with_barrier(1, R"(
@%p0 bra WAIT;
mbarrier.complete_tx.shared::cta.b64 [%r2], 8;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 24;
mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r2], 0;
@%p1 st.global.u32 [%rd0], 7;
mbarrier.complete_tx.shared::cta.b64 [%r2], 16;
)" + std::string(wait_zero));
    uint64_t out = 0;
    EXPECT_EQ(run(body, 64, 3, &out), "");
    EXPECT_EQ(out, 0u);
}

TEST(Mbarrier, DropsExpectedArrivals)
{
    std::string body = with_barrier(2, R"(
@%p0 bra END;
mbarrier.arrive_drop.shared::cta.b64 %rd5, [%r2];
mbarrier.arrive.shared::cta.b64 %rd5, [%r2];
mbarrier.arrive.shared::cta.b64 %rd5, [%r2];
mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r2], 1;
selp.u32 %r3, 1, 2, %p1;
st.global.u32 [%rd0], %r3;
mbarrier.inval.shared::cta.b64 [%r2];
mbarrier.init.shared::cta.b64 [%r2], 5;
END:
)");
    uint64_t out = 0;
    EXPECT_EQ(run(body, 32, 1, &out), "");
    EXPECT_EQ(out, 1u);  // two phases have ended
}

TEST(Mbarrier, ReportsMisuse)
{
    const std::string once = "@%p0 bra END;\n", end = "\nEND:\n";
    auto misuse = [&](const std::string& text) { return run(with_barrier(1, once + text + end), 32); };
    EXPECT_EQ(misuse("mbarrier.arrive.shared::cta.b64 _, [%r2+8];"), "mbarrier-uninitialised");
    EXPECT_EQ(misuse("mbarrier.init.shared::cta.b64 [%r2], 1;"), "mbarrier-reinit");
    EXPECT_EQ(misuse("mbarrier.init.shared::cta.b64 [%r2+8], 0;"), "mbarrier-count");
    EXPECT_EQ(misuse("mbarrier.init.shared::cta.b64 [%r2+8], 1048576;"), "mbarrier-count");
    EXPECT_EQ(misuse("mbarrier.init.shared::cta.b64 [%r2+4], 1;"), "misaligned");
    EXPECT_EQ(misuse("mbarrier.arrive.shared::cta.b64 %rd5, [%r2], 2;"), "mbarrier-overrun");
    EXPECT_EQ(misuse("mbarrier.expect_tx.shared::cta.b64 [%r2], 1048575;\n"
                     "mbarrier.expect_tx.shared::cta.b64 [%r2], 16;"),
              "mbarrier-tx-overflow");
    EXPECT_EQ(misuse("mbarrier.complete_tx.shared::cta.b64 [%r2], 1048575;\n"
                     "mbarrier.complete_tx.shared::cta.b64 [%r2], 16;"),
              "mbarrier-tx-underflow");
    EXPECT_EQ(misuse("mbarrier.arrive.noComplete.shared.b64 %rd5, [%r2], 1;"), "mbarrier-nocomplete");
    EXPECT_EQ(misuse("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 2;"), "mbarrier-parity");
    EXPECT_EQ(misuse("mbarrier.inval.shared::cta.b64 [%r2];\nmbarrier.arrive.shared::cta.b64 _, [%r2];"),
              "mbarrier-uninitialised");
    EXPECT_EQ(
        run(with_barrier(33, "mbarrier.arrive.shared::cta.b64 _, [%r2];" + std::string(wait_zero)), 32),
        "deadlock");
    EXPECT_EQ(misuse("mbarrier.arrive.shared::cluster.b64 %rd5, [%r2];"), "refused");
    EXPECT_EQ(misuse("mbarrier.arrive.fast.shared::cta.b64 %rd5, [%r2];"), "refused");
}

TEST(Mbarrier, UnorderedInitialisationIsARace)
{
    std::string body =
        with_barrier(64, "mbarrier.arrive.shared::cta.b64 _, [%r2];" + std::string(wait_zero));
    EXPECT_EQ(run(body, 64), "");
    std::string raced = body;
    raced.replace(raced.find("bar.sync 0;"), 11, "");
    for (uint64_t seed = 1; seed <= 5; seed++) {
        std::string reports = run(raced, 64, seed);
        EXPECT_TRUE(reports == "race" || reports == "mbarrier-uninitialised" ||
                    reports == "race missing-syncwarp" || reports == "missing-syncwarp race")
            << reports;
    }
}

}  // namespace
}  // namespace emu
