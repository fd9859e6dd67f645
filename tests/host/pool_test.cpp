// White-box tests of the host backend's threads: one pool, and the one that the handles of a process share.
#include "arch/host/pool.hpp"
#include "child.hpp"
#include "hgemm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

namespace hg {
namespace {

TEST(Pool, EveryIndexIsVisitedOnce)
{
    for (const int workers : {-1, 0, 1, 3, 8}) {
        Pool pool(workers);
        for (const int parts : {1, 2, 3, 7, 20}) {
            for (const int64_t count : {0, 1, 2, 5, 19, 20, 21, 1000}) {
                std::vector<std::atomic<int>> visits(count);
                pool.parallel_for(parts, count, [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                        ++visits[i];
                });
                for (const auto& visit : visits)
                    ASSERT_EQ(visit, 1) << workers << " " << parts << " " << count;
            }
        }
    }
}

TEST(Pool, RangesDependOnPartsAndCountAlone)
{
    const auto starts = [](int workers) {
        Pool pool(workers);
        std::vector<int> found(101);
        pool.parallel_for(
            7, 101, [&](int64_t begin, int64_t end) { found[begin] = static_cast<int>(end - begin); });
        return found;
    };
    EXPECT_EQ(starts(0), starts(5));
}

TEST(Pool, NoMoreThreadsThanPartsWorkAtOnce)
{
    Pool pool(6);
    std::atomic<int> working = 0, most = 0;
    for (int round = 0; round < 2000; ++round)
        pool.parallel_for(2, 2, [&](int64_t, int64_t) {
            const int now = ++working;
            if (now > most)
                most = now;
            std::this_thread::yield();
            --working;
        });
    EXPECT_LE(most, 2);
    EXPECT_EQ(working, 0);
}

TEST(Pool, ShortJobsInARowLoseNothing)
{
    Pool pool(3);
    int64_t sums[4] = {};
    for (int round = 0; round < 20000; ++round)
        pool.parallel_for(4, 4, [&](int64_t begin, int64_t) { sums[begin] += round; });
    for (const int64_t sum : sums)
        EXPECT_EQ(sum, int64_t{20000} * 19999 / 2);
}

// Uses the pool as a forked child may, destroying it at last.
bool works_alone(std::unique_ptr<Pool>& pool)
{
    const std::thread::id caller = std::this_thread::get_id();
    std::vector<int> visits(100);
    pool->parallel_for(4, 100, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && std::this_thread::get_id() == caller; ++i)
            ++visits[i];
    });
    pool.reset();
    return visits == std::vector<int>(100, 1);
}

TEST(Pool, AForkedChildWorksAloneAndDestroysIt)
{
    auto pool = std::make_unique<Pool>(3);
    EXPECT_TRUE(test::succeeds_in_child([&] { return works_alone(pool); }));
    EXPECT_TRUE(test::succeeds_in_child([&] {
        pool.reset();
        return true;
    }));
    std::atomic<int64_t> sum = 0;
    pool->parallel_for(4, 100, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100);
}

// The lock may be held, or a job half done, in the moment of the fork.
TEST(Pool, AThreadMayForkWhileOthersWork)
{
    auto pool = std::make_unique<Pool>(3);
    std::atomic<bool> stop = false;
    std::thread busy([&] {
        while (!stop)
            pool->parallel_for(4, 4, [](int64_t, int64_t) {});
    });
    for (int fork = 0; fork < 50 && !HasFailure(); ++fork)
        EXPECT_TRUE(test::succeeds_in_child([&] { return works_alone(pool); })) << fork;
    stop = true;
    busy.join();
}

// Each of the threads waits in its own work for the others to have begun theirs.
TEST(Pool, ManyThreadsCallAtOnceAndNoneWaitsForAnother)
{
    Pool pool(2);
    constexpr int callers = 6;
    std::atomic<int> inside = 0;
    std::vector<std::thread> threads;
    for (int caller = 0; caller < callers; ++caller)
        threads.emplace_back([&] {
            std::atomic<int64_t> sum = 0;
            std::atomic<bool> begun = false;
            pool.parallel_for(3, 100, [&](int64_t begin, int64_t end) {
                if (!begun.exchange(true))
                    ++inside;
                while (inside < callers)
                    std::this_thread::yield();
                sum += end - begin;
            });
            EXPECT_EQ(sum, 100);
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST(Pool, JobsOfManyThreadsLoseNothing)
{
    Pool pool(3);
    std::vector<std::thread> threads;
    for (int caller = 0; caller < 4; ++caller)
        threads.emplace_back([&] {
            int64_t sums[5] = {};
            for (int round = 0; round < 3000; ++round)
                pool.parallel_for(5, 5, [&](int64_t begin, int64_t) { sums[begin] += round; });
            for (const int64_t sum : sums)
                EXPECT_EQ(sum, int64_t{3000} * 2999 / 2);
        });
    for (std::thread& thread : threads)
        thread.join();
}

int64_t threads_of_process()
{
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
}

// A thread that was joined may still be listed for a moment.
int64_t threads_after_a_while(int64_t wanted)
{
    for (int wait = 0; wait < 1000 && threads_of_process() != wanted; ++wait)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return threads_of_process();
}

TEST(SharedPool, IsOneWithTheMostThreadsAskedForAndEndsWithItsLastUser)
{
    const int64_t before = threads_of_process();
    std::shared_ptr<Pool> one = Pool::shared(2), two = Pool::shared(3), three = Pool::shared(1);
    EXPECT_EQ(one, two);
    EXPECT_EQ(one, three);
    EXPECT_EQ(threads_of_process(), before + 3);
    one = two = nullptr;
    EXPECT_EQ(threads_of_process(), before + 3);
    three = nullptr;
    EXPECT_EQ(threads_after_a_while(before), before);
    one = Pool::shared(1);
    EXPECT_EQ(threads_of_process(), before + 1);
}

// A thread sanitizer knows no threads of a forked child.
#if !defined(__SANITIZE_THREAD__)
TEST(SharedPool, AForkedChildHasOneOfItsOwn)
{
    const std::shared_ptr<Pool> parents = Pool::shared(2);
    EXPECT_TRUE(test::succeeds_in_child([&] {
        const std::shared_ptr<Pool> own = Pool::shared(2);
        return own != parents && own == Pool::shared(2) && threads_of_process() == 3;
    }));
}

// What leads to the pool may be locked in the moment of the fork.
TEST(SharedPool, AThreadMayForkWhileOthersBeginAndEndIt)
{
    std::atomic<bool> stop = false;
    std::vector<std::thread> busy;
    for (int i = 0; i < 2; ++i)
        busy.emplace_back([&] {
            while (!stop)
                Pool::shared(1)->parallel_for(2, 2, [](int64_t, int64_t) {});
        });
    for (int fork = 0; fork < 100 && !HasFailure(); ++fork)
        EXPECT_TRUE(test::succeeds_in_child([] {
            std::atomic<int64_t> sum = 0;
            Pool::shared(1)->parallel_for(2, 100, [&](int64_t begin, int64_t end) { sum += end - begin; });
            return sum == 100;
        })) << fork;
    stop = true;
    for (std::thread& thread : busy)
        thread.join();
}

#endif

TEST(SharedPool, ManyHandlesHaveNoMoreThreadsThanOne)
{
    std::vector<hgemm_handle_t> handles(300);
    ASSERT_EQ(hgemm_create_on(&handles[0], HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    const int64_t with_one = threads_of_process();
    for (size_t i = 1; i < handles.size(); ++i)
        ASSERT_EQ(hgemm_create_sized(&handles[i], HGEMM_DEVICE_HOST, 0), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(threads_of_process(), with_one);
    for (const hgemm_handle_t handle : handles)
        hgemm_destroy(handle);
}

}  // namespace
}  // namespace hg
