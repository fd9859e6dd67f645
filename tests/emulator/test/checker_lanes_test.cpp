// Rules of the race checker within a warp and for tensor memory.
#include "test/checker_fixture.hpp"

namespace emu {
namespace {

TEST_F(CheckerTest, lanes_need_syncwarp)
{
    write(warp(0, 1, 3), 0, 4);
    read(warp(0, 2, 3), 0, 4);
    EXPECT_EQ(reported(), "");
    read(warp(0, 3, 4), 0, 4);
    EXPECT_EQ(reported(), "missing-syncwarp:3");

    write(warp(0, 4, 3), 64, 4);
    checker.sync_warp(warps[0]);
    read(warp(0, 5, 4), 64, 4);
    EXPECT_EQ(reported(), "");

    write(warp(0, 6, 3), 128, 4);
    barrier(0, 0);
    read(warp(0, 7, 4), 128, 4);
    EXPECT_EQ(reported(), "") << "a barrier synchronises the warp";
}

TEST_F(CheckerTest, lanes_side_by_side)
{
    const auto all = [this](int line, Access kind, uint32_t offset, uint32_t bytes) {
        checker.access_warp(cta, offset, bytes, kind, warp(0, line));
    };
    all(1, Access::Write, 0, 4);
    all(2, Access::Read, 0, 4);
    read(warp(0, 3, 6), 24, 4);
    EXPECT_EQ(reported(), "") << "each lane its own";
    read(warp(0, 4, 6), 28, 4);
    EXPECT_EQ(reported(), "missing-syncwarp:4");
    all(5, Access::Read, 0, 2);
    EXPECT_EQ(reported(), "missing-syncwarp:5");
    checker.sync_warp(warps[0]);
    all(6, Access::Write, 0, 4);
    all(7, Access::Write, 128, 16);
    checker.sync_warp(warps[0]);
    read(warp(0, 8), 0, 128);
    EXPECT_EQ(reported(), "");
    all(9, Access::Write, 4, 4);
    read(warp(0, 10, 5), 24, 4);
    read(warp(0, 11, 4), 24, 4);
    EXPECT_EQ(reported(), "missing-syncwarp:11") << "not aligned to granules";
}

TEST_F(CheckerTest, lanes_of_one_instruction_may_write_the_same_bytes)
{
    for (int lane = 0; lane < warp_lanes; ++lane)
        write(warp(0, 1, lane), 0, 4);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, one_lane_releases_only_what_it_did_or_saw)
{
    write(warp(0, 1, 0), 0, 4);
    write(warp(0, 1, 5), 64, 4);
    barrier(0, 1, lane_0);
    read(warp(1, 2, 9), 0, 4);
    EXPECT_EQ(reported(), "");
    read(warp(1, 3, 9), 64, 4);
    EXPECT_EQ(reported(), "race:3");

    write(warp(0, 4, 5), 128, 4);
    checker.sync_warp(warps[0]);
    barrier(0, 1, lane_0);
    read(warp(1, 5, 9), 128, 4);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, one_lane_acquires_for_itself)
{
    write(warp(0, 1), 0, 16);
    SyncClock clock;
    checker.release(warps[0], clock);
    checker.acquire(warps[1], clock, lane_0);
    read(warp(1, 2, 0));
    EXPECT_EQ(reported(), "");
    read(warp(1, 3, 1));
    EXPECT_EQ(reported(), "race:3");
    checker.sync_warp(warps[1]);
    read(warp(1, 4, 1));
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, lanes_wait_for_their_own_part_of_an_operation)
{
    const uint32_t both = 3;
    const int copy = checker.start_async(warps[0], both);
    for (int lane = 0; lane < 2; ++lane)
        checker.access(nullptr, cta, lane * 16, 16, Access::Write, {copy, Proxy::Generic, 1, 0, lane});
    const SyncClock done = checker.alone(copy, both);
    checker.finish_async(copy);
    read(warp(0, 2, 0), 0);
    EXPECT_EQ(reported(), "race:2");
    checker.acquire_own(warps[0], done, both);
    read(warp(0, 3, 0), 0);
    read(warp(0, 3, 1), 16);
    EXPECT_EQ(reported(), "");
    read(warp(0, 4, 1), 0);
    read(warp(0, 5), 16);
    EXPECT_EQ(reported(), "missing-syncwarp:4 missing-syncwarp:5");
    barrier(0, 1, lane_0);
    read(warp(1, 6), 0);
    EXPECT_EQ(reported(), "");
    read(warp(1, 7), 16);
    EXPECT_EQ(reported(), "race:7");
    checker.sync_warp(warps[0]);
    barrier(0, 1, lane_0);
    read(warp(1, 8), 16);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, lanes_may_pass_data_through_a_barrier)
{
    write(warp(0, 1, 0), 0, 4);
    SyncClock clock;
    checker.release(warps[0], clock, lane_0);
    checker.acquire(warps[0], clock);
    for (int lane = 0; lane < warp_lanes; ++lane)
        read(warp(0, 2, lane), 0, 4);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, readers_of_every_lane_stay_few_and_known)
{
    for (int round = 0; round < 3; ++round)
        for (int index = 0; index < 4; ++index)
            for (int lane = 0; lane < warp_lanes; ++lane)
                read(warp(index, 1, lane), 0, 4);
    for (int index = 1; index < 4; ++index)
        barrier(index, 0, lane_0);
    write(warp(0, 2, 7), 0, 4);
    EXPECT_EQ(reported(), "missing-syncwarp:2 race:2") << "lane 0 alone released the other warps' reads";
}

TEST_F(CheckerTest, tensor_memory_needs_its_own_fences)
{
    const auto tensor = [&](int agent, int line, Access kind) {
        checker.access_tmem(cta, 0, 128, 0, 128, kind, operation(agent, line));
    };
    const int mma = checker.start_async(warps[0]);
    tensor(mma, 1, Access::Write);
    tensor(checker.start_async(warps[1]), 2, Access::Read);
    EXPECT_EQ(reported(), "race:2");
    commit({mma}, 1);
    tensor(checker.start_async(warps[1]), 3, Access::Read);
    EXPECT_EQ(reported(), "missing-tcgen05-fence:3");
    checker.fence_tensor_after(warps[1]);
    const int load = checker.start_async(warps[1]);
    tensor(load, 4, Access::Read);
    EXPECT_EQ(reported(), "");

    // The next product over it: after the load's wait, a fence, a barrier and the other fence.
    checker.join_tensor(warps[1], checker.tensor_clock(load));
    SyncClock empty;
    checker.release(warps[1], empty);
    checker.acquire(warps[0], empty);
    checker.fence_tensor_after(warps[0]);
    const int again = checker.start_async(warps[0]);
    tensor(again, 5, Access::Write);
    EXPECT_EQ(reported(), "race:5 missing-tcgen05-fence:5")
        << "two loads without a wait, one without a fence";
}

TEST_F(CheckerTest, tensor_memory_in_order)
{
    const auto tensor = [&](int agent, int line, Access kind) {
        checker.access_tmem(cta, 32, 32, 32, 32, kind, operation(agent, line));
    };
    const int first = checker.start_async(warps[0]);
    tensor(first, 1, Access::Write);
    const int second = checker.start_async(warps[0]);
    checker.join_tensor(second, checker.tensor_clock(first));
    tensor(second, 2, Access::Read);
    tensor(second, 2, Access::Write);
    commit({first, second}, 1);
    checker.fence_tensor_after(warps[1]);
    const int load = checker.start_async(warps[1]);
    tensor(load, 3, Access::Read);
    checker.join_tensor(warps[1], checker.tensor_clock(load));
    checker.fence_tensor_before(warps[1]);
    barrier(1, 0);
    checker.fence_tensor_after(warps[0]);
    tensor(checker.start_async(warps[0]), 4, Access::Write);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, freed_tensor_memory)
{
    const int load = checker.start_async(warps[0]);
    checker.access_tmem(cta, 0, 32, 0, 32, Access::Write, operation(load, 1));
    checker.free_tmem(cta, 0, 32, warp(0, 2));
    EXPECT_EQ(reported(), "race:2");
    checker.access_tmem(cta, 0, 32, 0, 32, Access::Read, operation(load, 3));
    EXPECT_EQ(reported(), "uninitialised-read:3");
}

}  // namespace
}  // namespace emu
