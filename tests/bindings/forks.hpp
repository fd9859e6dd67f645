// Forks while other threads are in a library, for tests that no child waits for a lock whose owner stayed
// with the parent.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

namespace hg::test {

// @return true if it ended with 0 in time; what does not end is killed.
inline bool ends(pid_t child, std::chrono::seconds limit)
{
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > deadline) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return false;
        }
        std::this_thread::sleep_for(200us);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <typename Work>
pid_t fork_to(Work work)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(work() ? EXIT_SUCCESS : EXIT_FAILURE);
    return child;
}

constexpr std::chrono::seconds longest_life{10};  // of a child that works once

// Children that fail or hang. `work` returns whether it went right; four threads of the parent do it all
// the time.
template <typename Work>
int count_failures_beside_threads(int children, Work work)
{
    std::atomic<bool> stop = false;
    std::vector<std::thread> busy;
    for (int i = 0; i < 4; ++i)
        busy.emplace_back([&] {
            while (!stop)
                if (!work())
                    std::abort();
        });
    int failures = 0;
    for (int i = 0; i < children; ++i)
        failures += !ends(fork_to(work), longest_life);
    stop = true;
    for (std::thread& thread : busy)
        thread.join();
    return failures;
}

// The same. Half of the children have parents that use the library for the first time, where threads are
// still making what they share. This process must not have used it.
template <typename Work>
int count_failures(int children, Work work)
{
    constexpr int of_a_beginner = 3;
    int failures = 0, done = 0;
    for (; done < children / 2; done += of_a_beginner)
        failures += !ends(fork_to([=] { return count_failures_beside_threads(of_a_beginner, work) == 0; }),
                          (of_a_beginner + 1) * longest_life);
    return failures + count_failures_beside_threads(children - done, work);
}

}  // namespace hg::test
