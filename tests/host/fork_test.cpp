// Handles in children of a process one of whose threads is inside the dynamic loader, whose lock no thread
// of the child then gives back.
#include "child.hpp"

#include "hgemm.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hg::test {
namespace {

bool computes_on_a_new_handle()
{
    constexpr int64_t n = 64;
    const std::vector<hgemm_half_t> ones(n * n, 0x3c00);
    std::vector<hgemm_half_t> d(n * n);
    hgemm_handle_t handle = nullptr;
    const bool computed = hgemm_create_on(&handle, HGEMM_DEVICE_HOST) == HGEMM_STATUS_SUCCESS &&
                          hgemm_tn(handle, n, n, n, 1, ones.data(), n, ones.data(), n, 0, d.data(), n) ==
                              HGEMM_STATUS_SUCCESS &&
                          hgemm_destroy(handle) == HGEMM_STATUS_SUCCESS;
    return computed && d == std::vector<hgemm_half_t>(n * n, 0x5400);
}

TEST(Fork, ChildrenCreateHandlesWhileAThreadOpensLibraries)
{
    ASSERT_TRUE(computes_on_a_new_handle()) << hgemm_last_error();
    std::atomic<bool> stop = false;
    std::thread busy([&] {
        while (!stop)
            dlopen("libnot_there_at_all.so", RTLD_NOW);
    });
    for (int fork = 0; fork < 300 && !HasFailure(); ++fork)
        EXPECT_TRUE(succeeds_in_child(computes_on_a_new_handle)) << fork;
    stop = true;
    busy.join();
}

}  // namespace
}  // namespace hg::test
