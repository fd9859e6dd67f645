// The functions round the products: handles, settings, queries, errors, versions.
#include "../library.hpp"
#include "child.hpp"
#include "message.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace hg::test {
namespace {

class Api : public testing::Test {
protected:
    hgemm_handle_t handle() const { return library.handle(); }
    Library library{nullptr};
};

hgemm_args_t small_args()
{
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.m = args.n = args.k = 16;
    args.lda = args.ldb = args.ldc = args.ldd = 16;
    return args;
}

TEST_F(Api, create_refuses)
{
    expect_invalid(hgemm_create(nullptr), 1, "hgemm_create: argument 1 (handle) is NULL");
    expect_invalid(hgemm_create_on(nullptr, HGEMM_DEVICE_HOST), 1,
                   "hgemm_create_on: argument 1 (handle) is NULL");
    auto handle = reinterpret_cast<hgemm_handle_t>(8);
    expect_invalid(hgemm_create_on(&handle, -3), 2, "hgemm_create_on: argument 2 (device) is -3");
    EXPECT_EQ(handle, nullptr);
    handle = reinterpret_cast<hgemm_handle_t>(8);
    EXPECT_EQ(hgemm_create_on(&handle, 1000), HGEMM_STATUS_NO_DEVICE);
    EXPECT_TRUE(contains(hgemm_last_error(), "1000")) << hgemm_last_error();
    EXPECT_EQ(handle, nullptr);
    expect_invalid(hgemm_create_sized(&handle, HGEMM_DEVICE_HOST, SIZE_MAX), 3,
                   "hgemm_create_sized: argument 3 (workspace_bytes) is");
}

TEST_F(Api, handles_have_the_workspace_that_they_were_created_with)
{
    hgemm_args_t args = small_args();
    args.layout = HGEMM_ROW_MAJOR;
    std::vector<hgemm_half_t> a(256), d(256);
    args.a = args.b = a.data();
    args.c = args.d = d.data();
    const auto run = [&](size_t bytes) {
        hgemm_handle_t handle = nullptr;
        EXPECT_EQ(hgemm_create_sized(&handle, HGEMM_DEVICE_HOST, bytes), HGEMM_STATUS_SUCCESS);
        const hgemm_status_t status = hgemm_gemm_ex(handle, &args);
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        return status;
    };
    EXPECT_EQ(run(size_t{256} << 20), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(run(0), HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    EXPECT_TRUE(contains(hgemm_last_error(), "set a larger one by hgemm_set_workspace"))
        << hgemm_last_error();
}

TEST_F(Api, forked_children_multiply_and_destroy_the_handle)
{
    constexpr int64_t n = 256;
    const std::vector<hgemm_half_t> ones(n * n, 0x3c00);
    std::vector<hgemm_half_t> d(n * n);
    const auto multiply = [&] {
        return hgemm_nn(handle(), n, n, n, 1, ones.data(), n, ones.data(), n, 0, d.data(), n) ==
                   HGEMM_STATUS_SUCCESS &&
               d == std::vector<hgemm_half_t>(n * n, 0x5c00);
    };
    EXPECT_TRUE(multiply()) << hgemm_last_error();
    EXPECT_TRUE(succeeds_in_child([&] { return hgemm_destroy(handle()) == HGEMM_STATUS_SUCCESS; }));
    std::fill(d.begin(), d.end(), hgemm_half_t{});
    EXPECT_TRUE(
        succeeds_in_child([&] { return multiply() && hgemm_destroy(handle()) == HGEMM_STATUS_SUCCESS; }));
    EXPECT_TRUE(multiply()) << hgemm_last_error();
}

TEST_F(Api, create_obeys_the_environment)
{
    const Library unknown_backend(nullptr, "sm10");
    EXPECT_FALSE(unknown_backend.created());
    EXPECT_TRUE(contains(unknown_backend.story(), "unknown backend 'sm10' (HGEMM_BACKEND)"))
        << unknown_backend.story();
    const Library unknown_kernel(nullptr, "", "no_such_kernel");
    EXPECT_FALSE(unknown_kernel.created());
    EXPECT_TRUE(
        contains(unknown_kernel.story(), "unknown kernel 'no_such_kernel' (HGEMM_KERNEL), nearest: "))
        << unknown_kernel.story();
    EXPECT_LT(unknown_kernel.story().size(), 300u) << unknown_kernel.story();
    const Library misspelt(nullptr, "", "hots_blocked");
    EXPECT_TRUE(contains(misspelt.story(), "nearest: host_blocked")) << misspelt.story();
    EXPECT_TRUE(Library(nullptr, "host").created());
    EXPECT_TRUE(Library(nullptr, "", "host_blocked").created());
    const std::vector<std::string> names = kernel_names();
    EXPECT_NE(std::find(names.begin(), names.end(), "host_blocked"), names.end());
}

hgemm_status_t create_with_backend(const char* backend, hgemm_handle_t& handle)
{
    setenv("HGEMM_BACKEND", backend, 1);
    const hgemm_status_t status = hgemm_create(&handle);
    unsetenv("HGEMM_BACKEND");
    return status;
}

TEST_F(Api, automatic_handle)
{
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(create_with_backend("sm10", handle), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_TRUE(contains(hgemm_last_error(), "unknown backend 'sm10' (HGEMM_BACKEND)"))
        << hgemm_last_error();
    EXPECT_EQ(handle, nullptr);
    ASSERT_EQ(create_with_backend("host", handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_STREQ(hgemm_backend(handle), "host");
    hgemm_destroy(handle);
    if (Cuda::get())
        GTEST_SKIP() << "the rest is for a machine without a GPU";
    const hgemm_status_t status = create_with_backend("sm90", handle);
    const bool built_in = contains(hgemm_build_info(), "sm90");
    EXPECT_EQ(status, built_in ? HGEMM_STATUS_NO_DEVICE : HGEMM_STATUS_NOT_SUPPORTED) << hgemm_last_error();
    const std::string absent = "backend 'sm90' (HGEMM_BACKEND) is not built in, known: host";
    EXPECT_EQ(contains(hgemm_last_error(), absent), !built_in) << hgemm_last_error();
    EXPECT_EQ(handle, nullptr);
    ASSERT_EQ(create_with_backend("", handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_STREQ(hgemm_backend(handle), "host");
    hgemm_destroy(handle);
}

TEST_F(Api, stream)
{
    hgemm_stream_t stream = reinterpret_cast<hgemm_stream_t>(8);
    EXPECT_EQ(hgemm_get_stream(handle(), &stream), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(stream, nullptr);
    EXPECT_EQ(hgemm_set_stream(handle(), nullptr), HGEMM_STATUS_SUCCESS);
    expect_invalid(hgemm_set_stream(handle(), reinterpret_cast<hgemm_stream_t>(8)), 2,
                   "(stream) is 0x8, must be NULL");
    expect_invalid(hgemm_get_stream(handle(), nullptr), 2, "(stream) is NULL");
}

TEST_F(Api, workspace)
{
    alignas(256) static char bytes[512];
    EXPECT_EQ(hgemm_set_workspace(handle(), bytes, sizeof bytes), HGEMM_STATUS_SUCCESS);
    expect_invalid(hgemm_set_workspace(handle(), bytes + 16, 256), 2, "must be aligned to 256 bytes");
    expect_invalid(hgemm_set_workspace(handle(), nullptr, 300), 2,
                   "(workspace) is NULL, must point to 300 bytes");
    EXPECT_EQ(hgemm_set_workspace(handle(), nullptr, 0), HGEMM_STATUS_SUCCESS);

    const hgemm_args_t args = small_args();
    size_t size = 0;
    EXPECT_EQ(hgemm_workspace_size(handle(), &args, &size), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    expect_invalid(hgemm_workspace_size(handle(), nullptr, &size), 2, "(args) is NULL");
    expect_invalid(hgemm_workspace_size(handle(), &args, nullptr), 3, "(bytes) is NULL");
    hgemm_args_t wrong = small_args();
    wrong.k = -1;
    size = 77;
    expect_invalid(hgemm_workspace_size(handle(), &wrong, &size), 2, "(args->k) is -1");
    EXPECT_EQ(size, 77u);
}

TEST_F(Api, mode_and_sm_count)
{
    EXPECT_EQ(hgemm_set_mode(handle(), HGEMM_MODE_DEFAULT), HGEMM_STATUS_SUCCESS);
    expect_invalid(hgemm_set_mode(handle(), static_cast<hgemm_mode_t>(3)), 2,
                   "(mode) is 3, must be 0 (default), 1 (batch-invariant) or 2 (tree)");
    EXPECT_EQ(hgemm_set_mode(handle(), HGEMM_MODE_BATCH_INVARIANT), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_set_mode(handle(), HGEMM_MODE_DEFAULT), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_set_sm_count(handle(), 1), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_set_sm_count(handle(), 0), HGEMM_STATUS_SUCCESS);
    expect_invalid(hgemm_set_sm_count(handle(), -1), 2, "(count) is -1, must be at least 0");
}

TEST_F(Api, settings_are_told)
{
    hgemm_mode_t mode = HGEMM_MODE_BATCH_INVARIANT;
    int count = -1, device = 7;
    EXPECT_EQ(hgemm_get_mode(handle(), &mode), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(mode, HGEMM_MODE_DEFAULT);
    EXPECT_EQ(hgemm_get_device(handle(), &device), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(device, HGEMM_DEVICE_HOST);
    for (const int limit : {3, 1 << 30, 0}) {
        EXPECT_EQ(hgemm_set_sm_count(handle(), limit), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(hgemm_get_sm_count(handle(), &count), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(count, limit);
    }
    for (const hgemm_mode_t wanted : {HGEMM_MODE_BATCH_INVARIANT, HGEMM_MODE_TREE, HGEMM_MODE_DEFAULT}) {
        EXPECT_EQ(hgemm_set_mode(handle(), wanted), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(hgemm_get_mode(handle(), &mode), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(mode, wanted);
    }
    EXPECT_EQ(hgemm_set_mode(handle(), static_cast<hgemm_mode_t>(3)), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_get_mode(handle(), &mode), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(mode, HGEMM_MODE_DEFAULT) << "a refused mode is not set";
    expect_invalid(hgemm_get_mode(handle(), nullptr), 2, "hgemm_get_mode: argument 2 (mode) is NULL");
    expect_invalid(hgemm_get_sm_count(handle(), nullptr), 2, "(count) is NULL");
    expect_invalid(hgemm_get_device(handle(), nullptr), 2, "(device) is NULL");
}

TEST_F(Api, the_host_has_no_streams_to_have_workspaces)
{
    size_t bytes = 1;
    EXPECT_EQ(hgemm_set_workspace_per_stream(handle(), 0), HGEMM_STATUS_SUCCESS);
    expect_invalid(
        hgemm_set_workspace_per_stream(handle(), 4096), 2,
        "hgemm_set_workspace_per_stream: argument 2 (bytes) is 4096, must be 0: the handle computes "
        "on the host");
    EXPECT_EQ(hgemm_get_workspace_per_stream(handle(), &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(bytes, 0u);
    expect_invalid(hgemm_get_workspace_per_stream(handle(), nullptr), 2, "(bytes) is NULL");
    EXPECT_EQ(hgemm_set_workspace_per_stream(nullptr, 0), HGEMM_STATUS_NOT_INITIALIZED);
}

TEST_F(Api, workspace_in_use_is_told)
{
    void* memory = nullptr;
    size_t bytes = 0;
    hgemm_handle_t sized = nullptr;
    ASSERT_EQ(hgemm_create_sized(&sized, HGEMM_DEVICE_HOST, 1000), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_get_workspace(sized, &memory, &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_NE(memory, nullptr);
    EXPECT_EQ(bytes, 1024u);
    void* const own = memory;
    alignas(256) static char mine[512];
    EXPECT_EQ(hgemm_set_workspace(sized, mine, 300), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_get_workspace(sized, &memory, &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(memory, mine);
    EXPECT_EQ(bytes, 300u);
    EXPECT_EQ(hgemm_set_workspace(sized, nullptr, 0), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_get_workspace(sized, &memory, &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(memory, own);
    expect_invalid(hgemm_get_workspace(sized, nullptr, &bytes), 2, "(workspace) is NULL");
    expect_invalid(hgemm_get_workspace(sized, &memory, nullptr), 3, "(bytes) is NULL");
    hgemm_destroy(sized);
    ASSERT_EQ(hgemm_create_sized(&sized, HGEMM_DEVICE_HOST, 0), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_get_workspace(sized, &memory, &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(bytes, 0u);
    hgemm_destroy(sized);
}

TEST_F(Api, explain)
{
    const hgemm_args_t args = small_args();
    char text[512];
    std::memset(text, 'x', sizeof text);
    ASSERT_EQ(hgemm_explain(handle(), &args, text, sizeof text), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    const std::string whole = text;
    EXPECT_TRUE(contains(whole, "host_packed")) << whole;
    EXPECT_FALSE(contains(whole, "\n")) << whole;
    for (const size_t length : {size_t{1}, size_t{7}, whole.size(), whole.size() + 1}) {
        std::memset(text, 'x', sizeof text);
        ASSERT_EQ(hgemm_explain(handle(), &args, text, length), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(text, whole.substr(0, length - 1));
        EXPECT_EQ(text[length], 'x');
    }
    EXPECT_EQ(hgemm_explain(handle(), &args, nullptr, 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    expect_invalid(hgemm_explain(handle(), &args, nullptr, 5), 3,
                   "(buffer) is NULL, must point to 5 bytes");
    expect_invalid(hgemm_explain(handle(), nullptr, text, sizeof text), 2, "(args) is NULL");
    hgemm_args_t empty = small_args();
    empty.m = 0;
    EXPECT_EQ(hgemm_explain(handle(), &empty, text, sizeof text), HGEMM_STATUS_SUCCESS);
}

TEST_F(Api, symmetric_results_are_explained_and_need_the_workspace_that_is_told)
{
    hgemm_args_t args = small_args();
    args.n = args.m = 300;
    args.transb = HGEMM_TRANS;
    args.lda = args.ldb = args.ldc = args.ldd = 300;
    std::vector<hgemm_half_t> a(300 * 16), d(300 * 300);
    args.a = args.b = a.data();
    args.d = d.data();
    size_t bytes[3];
    const std::pair<hgemm_uplo_t, const char*> halves[] = {// column-major, thus the other half of D
                                                           {HGEMM_UPPER, "triangle in"},
                                                           {HGEMM_LOWER, "triangle in"},
                                                           {HGEMM_BOTH, "triangle and its mirror"}};
    for (size_t i = 0; i < 3; ++i) {
        args.uplo = halves[i].first;
        char text[512];
        ASSERT_EQ(hgemm_explain(handle(), &args, text, sizeof text), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(contains(text, halves[i].second)) << text;
        ASSERT_EQ(hgemm_workspace_size(handle(), &args, &bytes[i]), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(contains(text, "workspace=" + std::to_string(bytes[i]))) << text;
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_GT(bytes[0], bytes[2]) << "blocks on the diagonal, where the other half is kept";
    args.uplo = static_cast<hgemm_uplo_t>(124);
    expect_invalid(hgemm_workspace_size(handle(), &args, &bytes[0]), 2, "(args->uplo) is 124");
    expect_invalid(hgemm_explain(handle(), &args, nullptr, 0), 2, "(args->uplo) is 124");
}

TEST_F(Api, gated_results_are_explained_and_need_the_workspace_that_is_told)
{
    hgemm_args_t args = small_args();
    args.layout = HGEMM_ROW_MAJOR;
    args.m = 20;
    args.n = 64;
    args.transb = HGEMM_TRANS;
    args.lda = args.ldb = args.k;
    args.ldc = args.ldd = 32;
    std::vector<hgemm_half_t> a(64 * args.k), d(20 * 32);
    args.a = args.b = a.data();
    args.d = d.data();
    args.activation = HGEMM_ACTIVATION_SILU;
    for (const int64_t block : {32, 1}) {
        args.gate.block = block;
        char text[512];
        size_t bytes = 0;
        ASSERT_EQ(hgemm_explain(handle(), &args, text, sizeof text), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(contains(text, "gates in 2 launches, at most 20 x 32 of D of 1 problems")) << text;
        ASSERT_EQ(hgemm_workspace_size(handle(), &args, &bytes), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(contains(text, "workspace=" + std::to_string(bytes))) << text;
        EXPECT_GE(bytes, size_t{20} * 64 * sizeof(float));
    }
    args.gate.block = 3;
    size_t bytes = 0;
    expect_invalid(hgemm_workspace_size(handle(), &args, &bytes), 2, "(args->gate.block) is 3");
    expect_invalid(hgemm_explain(handle(), &args, nullptr, 0), 2, "(args->gate.block) is 3");
}

TEST_F(Api, errors_belong_to_their_thread)
{
    expect_invalid(hgemm_set_sm_count(handle(), -1), 2, "(count) is -1");
    std::thread([] {
        EXPECT_STREQ(hgemm_last_error(), "");
        EXPECT_EQ(hgemm_last_error_argument(), 0);
        EXPECT_EQ(hgemm_set_sm_count(nullptr, 1), HGEMM_STATUS_NOT_INITIALIZED);
    }).join();
    EXPECT_TRUE(contains(hgemm_last_error(), "hgemm_set_sm_count: argument 2 (count) is -1"));
    EXPECT_EQ(hgemm_set_mode(nullptr, HGEMM_MODE_DEFAULT), HGEMM_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(hgemm_last_error_argument(), 1);
    EXPECT_EQ(hgemm_set_sm_count(handle(), 0), HGEMM_STATUS_SUCCESS);
    EXPECT_TRUE(contains(hgemm_last_error(), "hgemm_set_mode: "))
        << "a success does not forget the last failure";
}

TEST_F(Api, status_names)
{
    static constexpr const char* names[] = {"SUCCESS",       "NOT_INITIALIZED", "INVALID_ARGUMENT",
                                            "NOT_SUPPORTED", "ALLOC_FAILED",    "NO_DEVICE",
                                            "DRIVER_ERROR",  "LAUNCH_FAILED",   "WORKSPACE_TOO_SMALL",
                                            "INTERNAL",      "TIMED_OUT"};
    for (int i = 0; i < 11; ++i)
        EXPECT_EQ(hgemm_status_string(static_cast<hgemm_status_t>(i)),
                  std::string("HGEMM_STATUS_") + names[i]);
    for (const int i : {-1, 11, 1 << 30})
        EXPECT_STRNE(hgemm_status_string(static_cast<hgemm_status_t>(i)), "");
}

TEST_F(Api, version)
{
    EXPECT_EQ(hgemm_version(), HGEMM_VERSION);
    std::ostringstream version;
    version << "libhgemm " << HGEMM_VERSION_MAJOR << '.' << HGEMM_VERSION_MINOR << '.'
            << HGEMM_VERSION_PATCH;
    EXPECT_EQ(std::string(hgemm_build_info()).find(version.str()), 0u) << hgemm_build_info();
    EXPECT_TRUE(contains(hgemm_build_info(), "host"));
    EXPECT_FALSE(contains(hgemm_build_info(), "\n"));
}

}  // namespace
}  // namespace hg::test
