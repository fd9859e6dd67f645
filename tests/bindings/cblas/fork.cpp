// Forks while other threads are in products, and makes a product in each child: none may wait for a lock
// whose owner stayed with the parent.
//
//   hgemm-cblas-fork [children [size]]
//
// OpenBLAS shares out products of 256 or more among its threads, unless OPENBLAS_NUM_THREADS is 1.
#include "hgemm_cblas.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

constexpr int threads = 4, children_of_a_beginner = 3;
int size = 8;
constexpr auto longest_life = 10s;  // of a child that makes one product

bool product_is_right()
{
    constexpr hgemm_bfloat16_t one = 0x3f80;
    const std::vector<hgemm_bfloat16_t> a(size * size, one);
    std::vector<float> c(size * size);
    cblas_sbgemm(HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, size, size, size, 1, a.data(), size,
                 a.data(), size, 0, c.data(), size);
    return std::all_of(c.begin(), c.end(), [](float x) { return x == static_cast<float>(size); });
}

// Refused, so that the library opens its log.
bool refusal_is_right()
{
    cblas_sbgemm(HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, -1, size, size, 1, nullptr, size, nullptr,
                 size, 0, nullptr, size);
    return hgemm_cblas_status() == HGEMM_STATUS_INVALID_ARGUMENT;
}

// @return true if it ended with 0 in time; what does not end is killed.
bool ends(pid_t child, std::chrono::seconds limit = longest_life)
{
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

int count_failures(int children)
{
    int failures = 0;
    for (int i = 0; i < children; ++i)
        failures += !ends(fork_to([] { return product_is_right() && refusal_is_right(); }));
    return failures;
}

// Starts the threads, and forks while they are in products.
int count_failures_beside_products(int children)
{
    std::atomic<bool> stop = false;
    std::vector<std::thread> busy;
    for (int i = 0; i < threads; ++i)
        busy.emplace_back([&] {
            while (!stop)
                if (!product_is_right() || !refusal_is_right())
                    std::abort();
        });
    const int failures = count_failures(children);
    stop = true;
    for (std::thread& thread : busy)
        thread.join();
    return failures;
}

}  // namespace

int main(int count, char** arguments)
{
    const int children = count > 1 ? std::atoi(arguments[1]) : 300;
    if (count > 2)
        size = std::atoi(arguments[2]);
    // Processes that use the library for the first time, so that threads are still making what they share.
    int beginners = 0, failures = 0;
    for (int i = 0; i < children / (2 * children_of_a_beginner); ++i, ++beginners)
        failures +=
            !ends(fork_to([] { return count_failures_beside_products(children_of_a_beginner) == 0; }),
                  (children_of_a_beginner + 1) * longest_life);
    failures += count_failures_beside_products(children - beginners * children_of_a_beginner);
    std::printf("%d of %d children, of which %d had parents that had just begun, hung or were wrong\n",
                failures, children, beginners * children_of_a_beginner);
    return failures == 0 && children > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
