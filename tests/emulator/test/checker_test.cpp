// Rules of the race checker for warps and asynchronous operations, each with a sequence that it must report
// and one that it must not.
#include "test/checker_fixture.hpp"

namespace emu {
namespace {

TEST_F(CheckerTest, write_then_read_by_another_warp_needs_a_barrier)
{
    write(warp(0, 1));
    barrier(0, 1);
    read(warp(1, 2));
    EXPECT_EQ(reported(), "");
    read(warp(2, 3));
    EXPECT_EQ(reported(), "race:3");
}

TEST_F(CheckerTest, what_follows_the_release_is_not_covered)
{
    SyncClock clock;
    checker.release(warps[0], clock);
    write(warp(0, 1));
    checker.acquire(warps[1], clock);
    read(warp(1, 2));
    EXPECT_EQ(reported(), "race:2");
}

TEST_F(CheckerTest, order_is_transitive)
{
    write(warp(0, 1));
    barrier(0, 1);
    barrier(1, 2);
    write(warp(2, 2));
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, write_after_read_needs_a_barrier_from_every_reader)
{
    read(warp(0, 1));
    read(warp(1, 2));
    barrier(0, 2);
    write(warp(2, 3));
    EXPECT_EQ(reported(), "race:3");
}

TEST_F(CheckerTest, a_reader_that_follows_another_stands_for_it)
{
    read(warp(0, 1));
    barrier(0, 1);
    read(warp(1, 2));
    barrier(1, 2);
    write(warp(2, 3));
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, neighbours_in_a_granule_do_not_race)
{
    write(warp(0, 1), 0, 4);
    write(warp(1, 2), 4, 4);
    read(warp(2, 3), 8, 8);
    EXPECT_EQ(reported(), "");
    read(warp(2, 4), 2, 4);
    EXPECT_EQ(reported(), "race:4");
}

TEST_F(CheckerTest, accesses_may_span_granules)
{
    write(warp(0, 1), 8, 100);
    read(warp(1, 2), 0, 8);
    read(warp(1, 3), 108, 16);
    EXPECT_EQ(reported(), "");
    read(warp(1, 4), 96, 16);
    EXPECT_EQ(reported(), "race:4");
}

TEST_F(CheckerTest, atomics_race_only_with_plain_accesses)
{
    atomic(warp(0, 1));
    atomic(warp(1, 2));
    EXPECT_EQ(reported(), "");
    read(warp(2, 3));
    EXPECT_EQ(reported(), "race:3");
}

TEST_F(CheckerTest, a_report_names_both_sides)
{
    write(warp(0, 11, 5));
    read(warp(1, 22, 7));
    ASSERT_EQ(reports.all().size(), 1u);
    const Report& report = reports.all()[0];
    EXPECT_EQ(report.warp, 1);
    EXPECT_EQ(report.lane, 7);
    EXPECT_NE(report.text.find("read by warp 1 lane 7 at line 22"), std::string::npos) << report.text;
    EXPECT_NE(report.text.find("write by warp 0 lane 5 at line 11"), std::string::npos) << report.text;
}

TEST_F(CheckerTest, asynchronous_write_is_seen_through_its_barrier)
{
    const int copy = checker.start_async(warps[0]);
    write(operation(copy, 1));
    SyncClock full;
    checker.release(copy, full);
    checker.finish_async(copy);
    checker.acquire(warps[1], full);
    read(warp(1, 2));
    EXPECT_EQ(reported(), "");
    read(warp(0, 3));
    EXPECT_EQ(reported(), "race:3") << "the issuer has not waited";
}

TEST_F(CheckerTest, asynchronous_copy_over_what_is_still_read)
{
    read(warp(1, 1));
    const int early = checker.start_async(warps[0]);
    write(operation(early, 2));
    EXPECT_EQ(reported(), "race:2");
    read(warp(2, 3), 64);
    barrier(2, 0);
    const int late = checker.start_async(warps[0]);
    write(operation(late, 4), 64);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, the_issuer_goes_on_beside_its_operation)
{
    const int store = checker.start_async(warps[0]);
    read(operation(store, 1));
    write(warp(0, 2));
    EXPECT_EQ(reported(), "race:2");
}

TEST_F(CheckerTest, generic_write_needs_a_fence_for_the_async_proxy)
{
    write(warp(0, 1));
    const int unfenced = checker.start_async(warps[0]);
    read(operation(unfenced, 2));
    EXPECT_EQ(reported(), "missing-proxy-fence:2");

    write(warp(0, 3), 64);
    checker.fence_proxy_async(warps[0]);
    const int fenced = checker.start_async(warps[0]);
    read(operation(fenced, 4), 64);
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, the_fence_may_be_the_writers_or_a_followers)
{
    write(warp(0, 1));
    checker.fence_proxy_async(warps[0]);
    barrier(0, 1);
    read(operation(checker.start_async(warps[1]), 2));
    EXPECT_EQ(reported(), "");

    write(warp(0, 3), 64);
    barrier(0, 1);
    checker.fence_proxy_async(warps[1]);
    read(operation(checker.start_async(warps[1]), 4), 64);
    EXPECT_EQ(reported(), "");

    write(warp(0, 5), 128);
    checker.fence_proxy_async(warps[1]);
    barrier(0, 1);
    read(operation(checker.start_async(warps[1]), 6), 128);
    EXPECT_EQ(reported(), "missing-proxy-fence:6") << "a fence elsewhere, before the order was made";
}

TEST_F(CheckerTest, generic_asynchronous_copies_need_the_fence_too)
{
    const int copy = checker.start_async(warps[0]);
    write(operation(copy, 1, Proxy::Generic));
    SyncClock group;
    checker.release(copy, group);
    checker.acquire(warps[0], group);
    read(operation(checker.start_async(warps[0]), 2));
    EXPECT_EQ(reported(), "missing-proxy-fence:2");
}

TEST_F(CheckerTest, reading_leaves_no_need_for_a_fence)
{
    read(warp(0, 1));
    write(operation(checker.start_async(warps[0]), 2));
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, uninitialised_bytes)
{
    read(warp(0, 1), 5000, 4);
    EXPECT_EQ(reported(), "uninitialised-read:1");
    write(warp(0, 2), 5000, 4);
    read(warp(0, 3), 5000, 4);
    EXPECT_EQ(reported(), "");
    read(warp(0, 4), 5000, 8);
    EXPECT_EQ(reported(), "uninitialised-read:4");
}

TEST_F(CheckerTest, strong_accesses)
{
    const auto strong = [this](const Actor& actor, Access kind) {
        checker.access(nullptr, cta, 6000, 4, kind, actor);
    };
    strong(warp(0, 1), Access::StrongWrite);
    strong(warp(1, 2), Access::StrongRead);
    strong(warp(2, 3), Access::Atomic);
    EXPECT_EQ(reported(), "") << "initialised, and no race";
    strong(warp(1, 4), Access::Read);
    EXPECT_EQ(reported(), "race:4");
    write(warp(3, 5), 6016, 4);
    barrier(3, 0);
    barrier(3, 1);
    checker.access(nullptr, cta, 6016, 4, Access::StrongRead, warp(0, 6));
    read(warp(1, 7), 6016, 4);
    EXPECT_EQ(reported(), "") << "two reads";
}

TEST_F(CheckerTest, numbers_of_old_operations_are_used_again)
{
    int highest = 0;
    for (int i = 0; i < 2000; ++i) {
        const int copy = checker.start_async(warps[i % 4]);
        write(operation(copy, 1), 16 * (i % 64));
        SyncClock full;
        checker.release(copy, full);
        checker.finish_async(copy);
        for (int index = 0; index < 4; ++index)
            checker.acquire(warps[index], full);
        highest = std::max(highest, copy);
    }
    EXPECT_EQ(reported(), "");
    EXPECT_LT(highest, 256);
}

// A bulk store has read shared memory before it has written global memory; its number is free when both
// were seen.
TEST_F(CheckerTest, a_number_whose_last_release_was_not_seen_is_not_used_again)
{
    for (const bool all : {false, true}) {
        const int store = checker.start_async(warps[0], lane_0);
        SyncClock read, written;
        checker.release(store, read);
        checker.release(store, written);
        checker.finish_async(store);
        checker.acquire(warps[0], all ? written : read);
        EXPECT_EQ(checker.start_async(warps[0], lane_0) == store, all);
    }
}

// The commit has made the mma known to those that wait for it; a copy that has its number then has not.
TEST_F(CheckerTest, a_number_that_is_used_again_says_nothing_of_tensor_memory)
{
    const int mma = checker.start_async(warps[0]);
    checker.access_tmem(cta, 0, 16, 0, 32, Access::Write, operation(mma, 1));
    const int commit = checker.start_async(warps[0]);
    checker.join_tensor(commit, checker.tensor_clock(mma));
    checker.fence_tensor_before(commit);
    SyncClock done, copied;
    checker.release(commit, done);
    checker.finish_async(commit);
    checker.acquire(warps[0], done);
    const int copy = checker.start_async(warps[0]);
    EXPECT_EQ(copy, commit);
    checker.release(copy, copied);
    checker.acquire(warps[1], copied);
    checker.fence_tensor_after(warps[1]);
    checker.access_tmem(cta, 0, 16, 0, 32, Access::Read, warp(1, 2));
    EXPECT_NE(reported(), "");
}

TEST_F(CheckerTest, an_ended_cta_leaves_nothing_behind)
{
    write(warp(0, 1));
    checker.forget(cta);
    checker.set_initialised(cta, 0, 4096);
    read(warp(1, 2));
    EXPECT_EQ(reported(), "");
}

TEST_F(CheckerTest, an_operation_is_not_forgotten_behind_many_others)
{
    const int first = checker.start_async(warps[0]);
    write(operation(first, 1));
    checker.finish_async(first);
    for (int i = 0; i < 500; ++i) {
        const int next = checker.start_async(warps[1]);
        SyncClock done;
        checker.release(next, done);
        checker.acquire(warps[1], done);
        checker.finish_async(next);
    }
    read(warp(1, 2));
    EXPECT_EQ(reported(), "race:2");
}

TEST_F(CheckerTest, level_one_checks_no_races)
{
    checker.configure(1);
    write(warp(0, 1));
    read(warp(1, 2), 6000);
    EXPECT_EQ(reported(), "");
}

}  // namespace
}  // namespace emu
