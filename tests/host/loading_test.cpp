// The library loaded and unloaded again and again, as plug-ins do it.
#include <hgemm.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <dlfcn.h>
#include <malloc.h>

namespace {

size_t heap_bytes()
{
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

void load_use_unload()
{
    void* const library = dlopen(HGEMM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto create = reinterpret_cast<decltype(&hgemm_create_on)>(dlsym(library, "hgemm_create_on"));
    const auto destroy = reinterpret_cast<decltype(&hgemm_destroy)>(dlsym(library, "hgemm_destroy"));
    ASSERT_TRUE(create && destroy);
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(create(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS);
    ASSERT_EQ(destroy(handle), HGEMM_STATUS_SUCCESS);
    ASSERT_EQ(dlclose(library), 0) << dlerror();
}

TEST(Loading, LeavesNoMemoryBehind)
{
    for (int cycle = 0; cycle < 10; ++cycle)
        ASSERT_NO_FATAL_FAILURE(load_use_unload());
    const size_t before = heap_bytes();
    for (int cycle = 0; cycle < 1000; ++cycle)
        ASSERT_NO_FATAL_FAILURE(load_use_unload());
    // Less than a hundred bytes a cycle: a dynamic loader's lists may grow once.
    EXPECT_LE(heap_bytes(), before + 65536);
}

}  // namespace
