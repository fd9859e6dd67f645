// Work that is divided among threads: all of it is done, where it fails and where there are no threads too.
#include "src/base/side_by_side.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <new>
#include <string>
#include <thread>

namespace hg {
namespace {

constexpr int count = 5;

TEST(SideBySide, each_part_waits_for_all_others)
{
    std::latch all_are_there(count);
    EXPECT_EQ(run_side_by_side(count,
                               [&](int) {
                                   all_are_there.arrive_and_wait();
                                   return ok;
                               }),
              ok);
}

TEST(SideBySide, one_part_and_none)
{
    const auto caller = std::this_thread::get_id();
    EXPECT_EQ(run_side_by_side(1,
                               [&](int) {
                                   EXPECT_EQ(std::this_thread::get_id(), caller);
                                   return ok;
                               }),
              ok);
    EXPECT_EQ(run_side_by_side(0, [](int) { return HGEMM_STATUS_INTERNAL; }), ok);
}

// Whichever part fails, on whichever thread: the caller has its status and text, under its own function's
// name, and the other parts are done.
TEST(SideBySide, a_failure_reaches_the_caller)
{
    for (int wrong = 0; wrong < count; ++wrong) {
        const Call call("hgemm_create");
        std::atomic<int> done = 0;
        const Status status = run_side_by_side(count, [&](int i) {
            ++done;
            return i == wrong ? fail(HGEMM_STATUS_DRIVER_ERROR, "part %d is wrong", i) : ok;
        });
        EXPECT_EQ(status, HGEMM_STATUS_DRIVER_ERROR);
        EXPECT_EQ(error_text(), "hgemm_create: part " + std::to_string(wrong) + " is wrong");
        EXPECT_EQ(done, count);
    }
}

TEST(SideBySide, what_a_thread_throws_is_a_failure)
{
    EXPECT_EQ(run_side_by_side(count, [](int i) { return i == 0 ? throw std::bad_alloc() : Status{ok}; }),
              HGEMM_STATUS_ALLOC_FAILED);
    EXPECT_THROW(
        run_side_by_side(count, [](int i) { return i == count - 1 ? throw std::bad_alloc() : Status{ok}; }),
        std::bad_alloc);
}

// As a user without a privilege who may have one process: its only thread does everything.
int run_without_threads()
{
    const rlimit one{1, 1};
    if (setrlimit(RLIMIT_NPROC, &one) != 0 || (getuid() == 0 && setuid(65534) != 0))
        return 2;
    try {
        std::thread([] {}).join();
        return 3;
    } catch (const std::system_error&) {
    }
    const auto caller = std::this_thread::get_id();
    int done = 0;
    const Status status = run_side_by_side(count, [&](int) {
        done += std::this_thread::get_id() == caller;
        return ok;
    });
    return status == ok && done == count ? 0 : 1;
}

TEST(SideBySide, without_threads_all_is_done_in_turn)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(run_without_threads());
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hg
