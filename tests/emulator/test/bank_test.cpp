// Passes over the banks of shared memory.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

// One warp accesses shared memory once, each lane at `stride` times its number; passes and the least that
// an access of this width takes.
struct Cost {
    uint64_t passes, least;
    bool operator==(const Cost&) const = default;
};

Cost cost(const std::string& access, int stride)
{
    Device device(90);
    device.machine().checker.configure(0);
    const std::string text = "setp.lt.u32 %p0, %r0, 16;\nmov.u32 %r2, dynamic;\nmad.lo.u32 %r2, %r0, " +
                             std::to_string(stride) + ", %r2;\n" + access;
    EXPECT_EQ(device.run(ptx_kernel("sm_90a", 0, text), shape_of(1, 32, 1, 8192), {}), "");
    const auto& lines = device.machine().statistics.shared;
    EXPECT_EQ(lines.size(), 1u);
    const BankPasses& only = lines.begin()->second;
    EXPECT_EQ(only.accesses, 1u);
    return {only.passes, only.least};
}

TEST(Banks, WordsOfAllLanesGoTogether)
{
    const std::string load = "ld.shared.u32 %r3, [%r2];";
    EXPECT_EQ(cost(load, 4), (Cost{1, 1}));
    EXPECT_EQ(cost(load, 0), (Cost{1, 1})) << "one word serves all";
    EXPECT_EQ(cost(load, 8), (Cost{2, 1}));
    EXPECT_EQ(cost(load, 128), (Cost{32, 1}));
    EXPECT_EQ(cost(load, 132), (Cost{1, 1}));
    EXPECT_EQ(cost("@%p0 " + load, 128), (Cost{16, 1}));
    EXPECT_EQ(cost("ld.shared.u16 %h3, [%r2];", 2), (Cost{1, 1}));
    EXPECT_EQ(cost("st.shared.u16 [%r2], %h3;", 64), (Cost{16, 1}));
    EXPECT_EQ(cost("atom.shared.add.u32 %r3, [%r2], 1;", 64), (Cost{16, 1}));
}

TEST(Banks, WiderAccessesGoInPhases)
{
    const std::string two = "ld.shared.v2.u32 {%r3, %r4}, [%r2];";
    EXPECT_EQ(cost(two, 8), (Cost{2, 2}));
    EXPECT_EQ(cost(two, 16), (Cost{4, 2}));
    EXPECT_EQ(cost("@%p0 " + two, 8), (Cost{1, 1}));
    const std::string four = "st.shared.v4.u32 [%r2], {%r3, %r4, %r5, %r6};";
    EXPECT_EQ(cost(four, 16), (Cost{4, 4}));
    EXPECT_EQ(cost(four, 32), (Cost{8, 4}));
    EXPECT_EQ(cost(four, 128), (Cost{32, 4}));
    EXPECT_EQ(cost(four, 144), (Cost{4, 4}));
    EXPECT_EQ(cost("@%p0 " + four, 16), (Cost{2, 2}));
}

TEST(Banks, MatricesGoByEightRows)
{
    const std::string shape = ".sync.aligned.m8n8.x", four = "{%r3, %r4, %r5, %r6}";
    EXPECT_EQ(cost("ldmatrix" + shape + "4.shared.b16 " + four + ", [%r2];", 16), (Cost{4, 4}));
    EXPECT_EQ(cost("ldmatrix" + shape + "4.shared.b16 " + four + ", [%r2];", 128), (Cost{32, 4}));
    EXPECT_EQ(cost("ldmatrix" + shape + "4.trans.shared.b16 " + four + ", [%r2];", 144), (Cost{4, 4}));
    EXPECT_EQ(cost("ldmatrix" + shape + "1.shared.b16 %r3, [%r2];", 64), (Cost{4, 1}));
    EXPECT_EQ(cost("stmatrix" + shape + "2.shared.b16 [%r2], {%r3, %r4};", 32), (Cost{4, 2}));
}

}  // namespace
}  // namespace emu
