// Which clusters run at a time, and in which order they start.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace emu {
namespace {

constexpr uint32_t ctas = 12;

struct Busy : Device {
    Busy(int free_sms, Start start) : Device(90)
    {
        machine().config.sm_count = ctas;
        machine().config.free_sms = free_sms;
        machine().config.start = start;
    }
};

// When each cluster began: its ticket, of one SM's worth of clusters at a time.
std::vector<uint32_t> tickets(Start start, uint32_t cluster)
{
    Busy device(1, start);
    const uint64_t counter = device.put(std::vector<uint32_t>(1)),
                   words = device.put(std::vector<uint32_t>(ctas / cluster, ctas));
    const std::string body = "setp.ne.u32 %p0, %cluster_ctarank, 0;\n"
                             "@%p0 bra END;\n"
                             "atom.global.add.u32 %r2, [%rd0], 1;\n"
                             "mov.u32 %r3, %clusterid.x;\n"
                             "mul.wide.u32 %rd2, %r3, 4;\n"
                             "add.u64 %rd2, %rd2, %rd1;\n"
                             "st.global.u32 [%rd2], %r2;\n"
                             "END:\n";
    EXPECT_EQ(device.run(ptx_kernel("sm_90", 2, body), shape_of(ctas, 1, cluster), {counter, words}), "")
        << device.message();
    return device.get<uint32_t>(words, ctas / cluster);
}

TEST(Residency, ClustersStartInTheOrderThatIsSet)
{
    for (const uint32_t cluster : {1, 2}) {
        std::vector<uint32_t> ascending(ctas / cluster);
        std::iota(ascending.begin(), ascending.end(), 0);
        EXPECT_EQ(tickets(Start::Ascending, cluster), ascending);
        const std::vector<uint32_t> descending(ascending.rbegin(), ascending.rend());
        EXPECT_EQ(tickets(Start::Descending, cluster), descending);
        std::vector<uint32_t> random = tickets(Start::Random, cluster);
        EXPECT_NE(random, ascending);
        EXPECT_NE(random, descending);
        std::sort(random.begin(), random.end());
        EXPECT_EQ(random, ascending) << "each starts once";
    }
}

// CTA 0 waits for the last one, which a GPU does not promise to run beside it.
std::string wait_for_last(int free_sms, Start start)
{
    Busy device(free_sms, start);
    const std::string body = "setp.eq.u32 %p0, %r1, " + std::to_string(ctas - 1) + ";\n" +
                             "@%p0 st.relaxed.gpu.global.u32 [%rd0], 1;\n"
                             "setp.ne.u32 %p0, %r1, 0;\n"
                             "@%p0 bra END;\n"
                             "AGAIN:\n"
                             "ld.relaxed.gpu.global.u32 %r2, [%rd0];\n"
                             "setp.eq.u32 %p0, %r2, 0;\n"
                             "@%p0 bra AGAIN;\n"
                             "END:\n";
    const uint64_t word = device.put(std::vector<uint32_t>(1));
    return device.run(ptx_kernel("sm_90", 1, body), shape_of(ctas, 1), {word});
}

TEST(Residency, WaitingForACtaThatHasNoPlaceIsADeadlock)
{
    EXPECT_EQ(wait_for_last(0, Start::Ascending), "");
    EXPECT_EQ(wait_for_last(2, Start::Ascending), "") << "the others pass through the second place";
    EXPECT_EQ(wait_for_last(1, Start::Descending), "");
    EXPECT_EQ(wait_for_last(1, Start::Ascending), "deadlock");
}

}  // namespace
}  // namespace emu
