// cp.async: copies, zero fill, groups, and arrivals on mbarriers.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

std::string copy_kernel(const std::string& wait, const std::string& sync = "bar.sync 0;")
{
    return R"(
.shared .align 16 .b8 tile[2048];
.shared .align 8 .b64 bar;
mov.u32 %r2, tile;
mov.u32 %r20, bar;
setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared::cta.b64 [%r20], 64;
bar.sync 0;
mad.lo.u32 %r3, %r0, 16, %r2;
mul.wide.u32 %rd5, %r0, 16;
add.u64 %rd6, %rd0, %rd5;
cp.async.cg.shared.global.L2::128B [%r3], [%rd6], 16;
cp.async.commit_group;
cp.async.ca.shared.global [%r3+1024], [%rd6+1024], 8, 4;
cp.async.ca.shared.global [%r3+1032], [%rd6+1032], 8;
cp.async.commit_group;
)" + wait + "\n" +
           sync + R"(
xor.b32 %r4, %r0, 32;
mad.lo.u32 %r4, %r4, 16, %r2;
ld.shared.v2.u64 {%rd7, %rd8}, [%r4];
add.u64 %rd9, %rd1, %rd5;
st.global.v2.u64 [%rd9], {%rd7, %rd8};
ld.shared.v2.u64 {%rd7, %rd8}, [%r4+1024];
st.global.v2.u64 [%rd9+1024], {%rd7, %rd8};
)";
}

std::string copy(const std::string& body, uint64_t seed, bool* right)
{
    Device device(80, seed);
    std::vector<uint8_t> values(2048);
    for (size_t i = 0; i < values.size(); i++)
        values[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
    uint64_t in = device.put(values), out = device.put(std::vector<uint8_t>(2048));
    std::string reports = device.run(ptx_kernel("sm_80", 2, body), shape_of(1, 64), {in, out});
    auto got = device.get<uint8_t>(out, 2048);
    *right = true;
    for (size_t i = 0; i < values.size(); i++) {
        bool zero = i >= 1024 && i % 16 >= 4 && i % 16 < 8;
        *right &= got[i ^ 512] == (zero ? 0 : values[i]);
    }
    return reports;
}

TEST(CpAsync, CopiesAndFillsWithZero)
{
    bool right;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        for (const char* wait : {"cp.async.wait_group 0;", "cp.async.wait_all;"}) {
            EXPECT_EQ(copy(copy_kernel(wait), seed, &right), "");
            EXPECT_TRUE(right);
        }
        std::string by_barrier = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20];\n"
                                 "W: mbarrier.test_wait.parity.shared.b64 %p1, [%r20], 0;\n@!%p1 bra W;";
        EXPECT_EQ(copy(copy_kernel(by_barrier, ""), seed, &right), "");
        EXPECT_TRUE(right);
    }
}

// Warps that poll for a copy do not keep it from ending.
TEST(CpAsync, EndWhileWarpsPoll)
{
    Device device(80, 1);
    const uint64_t in = device.put(std::vector<uint8_t>(2048)),
                   out = device.put(std::vector<uint8_t>(2048));
    const std::string poll = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20];\n"
                             "W: mbarrier.test_wait.parity.shared.b64 %p1, [%r20], 0;\n@!%p1 bra W;";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, copy_kernel(poll, "")), shape_of(1, 64), {in, out}), "");
    EXPECT_LT(device.machine().steps, 8000u);
}

TEST(CpAsync, MissingWaitsAreReported)
{
    bool right;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        EXPECT_NE(copy(copy_kernel("cp.async.wait_group 1;"), seed, &right), "");
        EXPECT_NE(copy(copy_kernel(""), seed, &right), "");
        EXPECT_NE(copy(copy_kernel("cp.async.wait_all;", ""), seed, &right), "");
    }
}

// Each lane of one warp copies 16 bytes, and reads those of the lane that `other` leads to.
std::string lane_kernel(const std::string& sync, const std::string& other)
{
    return ptx_kernel("sm_80", 1, R"(
.shared .align 16 .b8 tile[512];
mov.u32 %r2, tile;
mad.lo.u32 %r3, %r0, 16, %r2;
mul.wide.u32 %rd5, %r0, 16;
add.u64 %rd5, %rd5, %rd0;
cp.async.cg.shared.global [%r3], [%rd5], 16;
cp.async.commit_group;
cp.async.wait_group 0;
)" + sync + other);
}

TEST(CpAsync, LanesWaitForTheirOwnCopiesAlone)
{
    const std::string own = "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];";
    const std::string next = "xor.b32 %r4, %r3, 16;\nld.shared.u32 %r5, [%r4];";
    const std::string whole = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];";
    const std::string warp = "bar.warp.sync 0xffffffff;\n";
    const auto reports = [](const std::string& sync, const std::string& read) {
        Device device(80, 3);
        return device.run(lane_kernel(sync, read), shape_of(1, 32),
                          {device.put(std::vector<uint8_t>(512))});
    };
    EXPECT_EQ(reports("", own), "");
    EXPECT_EQ(reports("", next), "missing-syncwarp");
    EXPECT_EQ(reports("", whole), "missing-syncwarp");
    for (const std::string& sync : {warp, std::string("bar.sync 0;\n")}) {
        EXPECT_EQ(reports(sync, next), "");
        EXPECT_EQ(reports(sync, whole), "");
    }
    const std::string fence = "fence.proxy.async.shared::cta;\n", leader = "setp.ne.u32 %p0, %r0, 0;\n";
    const std::string store = leader + "@%p0 bra END;\ncp.async.bulk.global.shared::cta.bulk_group [%rd0], "
                                       "[%r2], 512;\ncp.async.bulk.commit_group;\n"
                                       "cp.async.bulk.wait_group 0;\nEND:";
    const auto stored = [&](const std::string& sync) {
        Device device(90, 3);
        std::string text = lane_kernel(sync, store);
        text.replace(text.find("sm_80"), 5, "sm_90");
        return device.run(text, shape_of(1, 32), {device.put(std::vector<uint8_t>(512))});
    };
    EXPECT_EQ(stored(fence + warp), "");
    EXPECT_EQ(stored(fence), "race");
    EXPECT_EQ(stored(warp), "missing-proxy-fence");
}

// A lane's arrival stands for its own copies, not for those that other lanes started with it.
TEST(CpAsync, ArrivalsCarryTheCopiesOfTheirLane)
{
    const auto reports = [](const std::string& count, const std::string& guard) {
        const std::string body = R"(
.shared .align 16 .b8 tile[512];
.shared .align 8 .b64 bar;
mov.u32 %r2, tile;
mov.u32 %r20, bar;
and.b32 %r4, %r0, 31;
mad.lo.u32 %r3, %r4, 16, %r2;
setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared::cta.b64 [%r20], )" +
                                 count + R"(;
bar.sync 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra READ;
cp.async.cg.shared.global [%r3], [%rd0], 16;
)" + guard + R"( cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20];
bra END;
READ: mbarrier.test_wait.parity.shared.b64 %p2, [%r20], 0;
@!%p2 bra READ;
ld.shared.u32 %r5, [%r3];
END:
)";
        Device device(80, 2);
        return device.run(ptx_kernel("sm_80", 1, body), shape_of(1, 64),
                          {device.put(std::vector<uint8_t>(16))});
    };
    EXPECT_EQ(reports("32", ""), "");
    EXPECT_EQ(reports("1", "@%p0"), "race");
}

TEST(CpAsync, IgnoredSourcesAreNotRead)
{
    std::string body = R"(
.shared .align 16 .b8 tile[512];
mov.u32 %r2, tile;
mad.lo.u32 %r3, %r0, 16, %r2;
setp.gt.u32 %p1, %r0, 3;
cp.async.cg.shared.global [%r3], [%rd0], 16, %p1;
cp.async.wait_all;
ld.shared.u32 %r4, [%r3];
mul.wide.u32 %rd5, %r0, 4;
add.u64 %rd5, %rd5, %rd1;
st.global.u32 [%rd5], %r4;
)";
    Device device(80);
    uint64_t in = device.put(std::vector<uint32_t>{9, 9, 9, 9}),
             out = device.put(std::vector<uint32_t>(32));
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, body), shape_of(1, 32), {in, out}), "") << device.message();
    auto got = device.get<uint32_t>(out, 32);
    for (uint32_t lane = 0; lane < 32; lane++)
        EXPECT_EQ(got[lane], lane > 3 ? 0u : 9u);
}

}  // namespace
}  // namespace emu
