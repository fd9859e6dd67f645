#include "fork.hpp"

#include "host.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace hg::cblas {
namespace {

constexpr std::chrono::microseconds pause{20};
// The wait has a limit, since a GEMM may itself wait for the thread that forks: a logger of the program's
// for a lock that this thread holds.
constexpr std::chrono::seconds longest_wait{10};

std::atomic<int> running = 0;  // GEMMs
std::atomic<int> forking = 0;  // threads
thread_local bool is_forking = false, is_in_gemm = false;

// A signal handler that forks may have interrupted a GEMM of its own thread, which must not be waited for.
void before_fork()
{
    if (is_forking)
        return;
    is_forking = true;
    ++forking;
    const auto deadline = std::chrono::steady_clock::now() + longest_wait;
    while (running > static_cast<int>(is_in_gemm) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(pause);
}

void after_fork_in_parent()
{
    if (is_forking)
        --forking;
    is_forking = false;
}

void after_fork_in_child()
{
    is_forking = false;
    forking = 0;
    running = is_in_gemm;
    forget_host_handles();
}

[[gnu::constructor]] void watch_forks()
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

void watch_forks_before_openblas()
{
    static std::atomic<bool> is_done = false;
    if (!is_done.exchange(true))
        watch_forks();
}

InProduct::InProduct()
{
    for (++running; forking > 0; ++running) {
        --running;
        while (forking > 0)
            std::this_thread::sleep_for(pause);
    }
    is_in_gemm = true;
}

InProduct::~InProduct()
{
    is_in_gemm = false;
    --running;
}

}  // namespace hg::cblas
