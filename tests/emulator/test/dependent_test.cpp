// Launches that may start before those in front of them have ended.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

// %rd0: a word for each of 64 threads, %rd10: this thread's; %p0: the first thread.
std::string pdl_reports(const std::string& body, bool overlaps = true, bool looks = true)
{
    Device device(90);
    device.machine().config.dependent = looks;
    const uint64_t words = device.put(std::vector<uint32_t>(64));
    const std::string text = R"(
.shared .align 128 .b8 smem[128];
.shared .align 8 .b64 bar;
mov.u32 %r2, smem;
mov.u32 %r3, bar;
setp.eq.u32 %p0, %r0, 0;
mul.wide.u32 %rd10, %r0, 4;
add.u64 %rd10, %rd10, %rd0;
)" + body;
    Launch launch = shape_of(1, 64);
    launch.overlaps = overlaps;
    return device.run(ptx_kernel("sm_90a", 1, text), launch, {words});
}

const std::string one_load = "ld.global.u32 %r4, [%rd10];\n", one_store = "st.global.u32 [%rd10], %r0;\n";
const std::string wait = "griddepcontrol.wait;\n", wait_first = "@%p0 griddepcontrol.wait;\n";

TEST(Dependent, MemoryIsAccessedBehindTheWait)
{
    EXPECT_EQ(pdl_reports(wait + one_load + one_store), "");
    EXPECT_EQ(pdl_reports(one_load + wait), "early-access");
    EXPECT_EQ(pdl_reports(one_store + wait), "early-access");
    EXPECT_EQ(pdl_reports("red.global.add.u32 [%rd0], 1;\n" + wait), "early-access");
    EXPECT_EQ(pdl_reports("griddepcontrol.launch_dependents;\n" + wait + one_load), "");
}

TEST(Dependent, WaitOfOneThreadServesThoseBehindIt)
{
    EXPECT_EQ(pdl_reports(wait_first + one_load), "early-access");
    EXPECT_EQ(pdl_reports(wait_first + "bar.warp.sync 0xffffffff;\n" + one_load), "early-access")
        << "the other warp has not waited";
    EXPECT_EQ(pdl_reports(wait_first + "bar.sync 0;\n" + one_load + one_store), "");
    EXPECT_EQ(pdl_reports(one_load + wait_first + "bar.sync 0;\n"), "early-access");
}

// A bulk copy into shared memory, for which all threads wait before they store.
std::string copied(const std::string& before_copy, const std::string& before_store)
{
    return pdl_reports(
        "@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;\nfence.mbarrier_init.release.cluster;\n"
        "bar.sync 0;\n@!%p0 bra WAIT;\n" +
        before_copy +
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 128, [%r3];\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;\n@!%p1 bra WAIT;\n" +
        before_store + one_store);
}

TEST(Dependent, WhatWasLoadedBehindTheWaitCarriesIt)
{
    EXPECT_EQ(copied(wait, ""), "");
    EXPECT_EQ(copied("", wait), "early-access") << "the copy itself";
    EXPECT_EQ(copied("", ""), "early-access unawaited-launch");
}

TEST(Dependent, SomebodyWaits)
{
    EXPECT_EQ(pdl_reports(""), "unawaited-launch");
    EXPECT_EQ(pdl_reports(wait_first), "");
}

TEST(Dependent, OthersNeedNotWait)
{
    EXPECT_EQ(pdl_reports(one_load + one_store, false), "");
    EXPECT_EQ(pdl_reports(one_load + one_store, true, false), "") << "not asked for";
}

}  // namespace
}  // namespace emu
