// Handles that are none: NULL, destroyed ones, and pointers to anything else.
#include "message.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace hg::test {
namespace {

hgemm_handle_t create()
{
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(hgemm_create_sized(&handle, HGEMM_DEVICE_HOST, size_t{1} << 20), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    return handle;
}

// A product of 1 x 1 x 1 by every function that multiplies.
std::vector<hgemm_status_t> multiply_by_all(hgemm_handle_t h)
{
    static uint16_t a[1], b[1], c[1];
    static const uint16_t *const as[] = {a}, *const bs[] = {b};
    static uint16_t* const cs[] = {c};
    std::vector<hgemm_status_t> answers;
    for (const auto function :
         {hgemm_nn, hgemm_nt, hgemm_tn, hgemm_tt, bgemm_nn, bgemm_nt, bgemm_tn, bgemm_tt})
        answers.push_back(function(h, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1));
    for (const auto function : {hgemm, bgemm})
        answers.push_back(
            function(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1));
    for (const auto function : {hgemm_strided_batched, bgemm_strided_batched})
        answers.push_back(function(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 1, 1, 1, 1, a, 1, 1,
                                   b, 1, 1, 0, c, 1, 1, 1));
    for (const auto function : {hgemm_batched, bgemm_batched})
        answers.push_back(function(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 1, 1, 1, 1, as, 1,
                                   bs, 1, 0, cs, 1, 1));
    for (const auto function : {hgemv_n, hgemv_t, bgemv_n, bgemv_t})
        answers.push_back(function(h, 1, 1, 1, a, 1, b, 1, 0, c, 1));
    return answers;
}

// The other functions that take a handle, but hgemm_backend() and hgemm_destroy().
std::vector<hgemm_status_t> ask_all(hgemm_handle_t h)
{
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.lda = args.ldb = args.ldc = args.ldd = 1;
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    int32_t end;
    hgemm_route_args_t route;
    hgemm_route_args_init(&route, sizeof route);
    route.choices = route.experts = route.ld = 1;
    route.ends = &end;
    hgemm_grouped_args_t clear = grouped;
    clear.ldd = 1;
    hgemm_rows_args_t rows;
    hgemm_rows_args_init(&rows, sizeof rows);
    rows.choices = rows.lda = rows.ldb = rows.ldd = 1;
    hgemm_gate_gradient_args_t gradient;
    hgemm_gate_gradient_args_init(&gradient, sizeof gradient);
    gradient.ld_product = gradient.ld_of_d = gradient.ld_of_product = gradient.gate.block = 1;
    hgemm_stream_t stream;
    size_t bytes;
    char text[10];
    void* workspace;
    hgemm_mode_t mode;
    int number;
    return {hgemm_set_stream(h, nullptr),
            hgemm_get_stream(h, &stream),
            hgemm_set_workspace(h, nullptr, 0),
            hgemm_set_mode(h, HGEMM_MODE_DEFAULT),
            hgemm_set_sm_count(h, 0),
            hgemm_get_workspace(h, &workspace, &bytes),
            hgemm_set_workspace_per_stream(h, 0),
            hgemm_get_workspace_per_stream(h, &bytes),
            hgemm_get_mode(h, &mode),
            hgemm_get_sm_count(h, &number),
            hgemm_get_device(h, &number),
            hgemm_gemm_ex(h, &args),
            hgemm_workspace_size(h, &args, &bytes),
            hgemm_explain(h, &args, text, sizeof text),
            hgemm_grouped_ex(h, &grouped),
            hgemm_gate_gradient(h, &gradient),
            hgemm_route(h, &route),
            hgemm_gather_rows(h, &rows),
            hgemm_combine_rows(h, &rows),
            hgemm_dot_rows(h, &rows),
            hgemm_clear_rows(h, &clear)};
}

void expect_answers(hgemm_handle_t handle, hgemm_status_t wanted)
{
    for (const auto& answers : {multiply_by_all(handle), ask_all(handle)})
        for (size_t i = 0; i < answers.size(); ++i)
            EXPECT_EQ(answers[i], wanted) << "function " << i << ": " << hgemm_last_error();
}

void expect_refused(hgemm_handle_t handle)
{
    expect_answers(handle, HGEMM_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(hgemm_last_error_argument(), 1);
    EXPECT_TRUE(contains(hgemm_last_error(), "argument 1 (handle) ")) << hgemm_last_error();
    EXPECT_STREQ(hgemm_backend(handle), "");
    EXPECT_EQ(hgemm_destroy(handle), handle ? HGEMM_STATUS_NOT_INITIALIZED : HGEMM_STATUS_SUCCESS);
}

TEST(Handles, that_are_live_are_served)
{
    const hgemm_handle_t handle = create();
    expect_answers(handle, HGEMM_STATUS_SUCCESS);
    EXPECT_STREQ(hgemm_backend(handle), "host");
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

TEST(Handles, that_are_null_or_destroyed_are_refused)
{
    expect_refused(nullptr);
    const hgemm_handle_t handle = create();
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    expect_refused(handle);
    EXPECT_TRUE(contains(hgemm_last_error(), "was destroyed or never created")) << hgemm_last_error();
}

TEST(Handles, that_were_destroyed_stay_refused_beside_newer_ones)
{
    std::vector<hgemm_handle_t> dead;
    for (int i = 0; i < 5; ++i) {
        dead.push_back(create());
        EXPECT_EQ(hgemm_destroy(dead.back()), HGEMM_STATUS_SUCCESS);
    }
    const hgemm_handle_t newer = create();
    for (const hgemm_handle_t handle : dead)
        expect_refused(handle);
    expect_answers(newer, HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_destroy(newer), HGEMM_STATUS_SUCCESS);
}

// The caller's pointer is not read: most of these lead to no memory.
TEST(Handles, that_are_other_pointers_are_refused)
{
    const hgemm_handle_t live = create();
    const auto on_heap = std::make_unique<uint64_t[]>(64);
    const uint64_t on_stack[64] = {};
    for (const void* const pointer :
         {static_cast<const void*>(on_heap.get()), static_cast<const void*>(on_stack)})
        expect_refused(reinterpret_cast<hgemm_handle_t>(const_cast<void*>(pointer)));
    const auto number = reinterpret_cast<uintptr_t>(live);
    for (const uintptr_t other :
         {uintptr_t{1}, uintptr_t{8}, uintptr_t{9}, UINTPTR_MAX, number + 1, number - 1,
          number & ~uintptr_t{15}, number + 16, number ^ uintptr_t{1} << 40})
        expect_refused(reinterpret_cast<hgemm_handle_t>(other));
    expect_answers(live, HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_destroy(live), HGEMM_STATUS_SUCCESS);
}

TEST(Handles, of_many_threads_are_different)
{
    constexpr int threads = 8, rounds = 50;
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i)
        workers.emplace_back([] {
            for (int round = 0; round < rounds; ++round) {
                hgemm_handle_t first = nullptr, second = nullptr;
                EXPECT_EQ(hgemm_create_sized(&first, HGEMM_DEVICE_HOST, 0), HGEMM_STATUS_SUCCESS);
                EXPECT_EQ(hgemm_create_sized(&second, HGEMM_DEVICE_HOST, 0), HGEMM_STATUS_SUCCESS);
                EXPECT_NE(first, second);
                EXPECT_EQ(hgemm_set_sm_count(first, 1), HGEMM_STATUS_SUCCESS);
                EXPECT_EQ(hgemm_destroy(first), HGEMM_STATUS_SUCCESS);
                EXPECT_EQ(hgemm_set_sm_count(first, 1), HGEMM_STATUS_NOT_INITIALIZED);
                EXPECT_EQ(hgemm_set_sm_count(second, 1), HGEMM_STATUS_SUCCESS);
                EXPECT_EQ(hgemm_destroy(second), HGEMM_STATUS_SUCCESS);
            }
        });
    for (std::thread& worker : workers)
        worker.join();
}

}  // namespace
}  // namespace hg::test
