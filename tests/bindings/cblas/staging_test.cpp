// Products staged to the virtual driver's GPU. The data are small integers, so that the host's results are
// the GPU's, bit for bit; with EMU_FAULTS the host does what the GPU leaves undone.
#include "route.hpp"
#include "stager.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace hg::cblas {
namespace {

bool faulty() { return std::getenv("EMU_FAULTS") != nullptr; }

uint64_t driver_calls(const char* name)
{
    using Calls = uint64_t (*)(const char*);
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto calls = driver ? reinterpret_cast<Calls>(dlsym(driver, "emu_calls")) : nullptr;
    return calls ? calls(name) : 0;
}

uint16_t small_half(size_t i)
{
    constexpr uint16_t values[] = {0, 0x3c00, 0xbc00, 0x4000, 0xc000};  // 0, 1, -1, 2, -2
    return values[(i * 7 + i / 11) % 5];
}

struct Product {
    std::vector<uint16_t> a, b;
    std::vector<float> d;
    hgemm_args_t args;

    Product(int64_t m, int64_t n, int64_t k, bool transposed, float beta)
    {
        hgemm_args_init(&args, sizeof args);
        args.layout = HGEMM_ROW_MAJOR;
        args.transa = args.transb = transposed ? HGEMM_TRANS : HGEMM_NO_TRANS;
        args.type_c = args.type_d = HGEMM_F32;
        args.m = m;
        args.n = n;
        args.k = k;
        args.beta = beta;
        args.lda = (transposed ? m : k) + 3;
        args.ldb = (transposed ? k : n) + 1;
        args.ldc = args.ldd = n + 2;
        a.resize(static_cast<size_t>((transposed ? k : m) * args.lda));
        b.resize(static_cast<size_t>((transposed ? n : k) * args.ldb));
        d.resize(static_cast<size_t>(m * args.ldd));
        for (size_t i = 0; i < a.size(); ++i)
            a[i] = small_half(i);
        for (size_t i = 0; i < b.size(); ++i)
            b[i] = small_half(i + 3);
        for (size_t i = 0; i < d.size(); ++i)
            d[i] = static_cast<float>(i % 9);
        args.a = a.data();
        args.b = b.data();
    }

    std::vector<float> result(Status (*run)(const hgemm_args_t&)) const
    {
        std::vector<float> copy = d;
        hgemm_args_t g = args;
        g.c = g.d = copy.data();
        EXPECT_EQ(run(g), ok) << error_text();
        return copy;
    }

    // Everything between the lines is compared as well.
    void expect_same(Status (*run)(const hgemm_args_t&)) const
    {
        EXPECT_TRUE(result(run) == result(run_on_host));
    }
};

Status in_blocks(const hgemm_args_t& g)
{
    const Blocks narrow{.resident_bytes = 20 * 2 * g.k};
    return Stager::get() ? run_on_gpu(g, narrow) : run_on_host(g);
}

TEST(Staging, the_gpu_is_used_unless_it_fails)
{
    const Product product(700, 40, 24, false, 0);
    product.expect_same(run);
    product.expect_same(run);
    if (faulty())
        return;
    ASSERT_NE(Stager::get(), nullptr);
    EXPECT_GE(driver_calls("cuLaunchKernelEx"), 6u) << "three panels each";
}

TEST(Staging, beta_and_transposes)
{
    Product(600, 33, 17, true, 2).expect_same(run);
    Product(3, 5, 7, true, 1).expect_same(run);
    Product(1, 1, 1, false, 1).expect_same(run);
}

TEST(Staging, columns_in_blocks)
{
    Product(300, 50, 9, false, 1).expect_same(in_blocks);
    Product(300, 50, 9, true, 0).expect_same(in_blocks);
}

TEST(Staging, a_large_operand_in_pieces)
{
    const uint64_t before = driver_calls("cuMemcpyHtoDAsync");
    Product(1, 4200, 2048, false, 0).expect_same(run);
    if (faulty())
        return;
    EXPECT_GE(driver_calls("cuMemcpyHtoDAsync") - before, 3u) << "two pieces of B, and A";
}

TEST(Staging, threads_take_turns)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([t] { Product(300 + t, 20, 8, t == 1, 1).expect_same(run); });
    for (std::thread& thread : threads)
        thread.join();
}

// The program captures a stream of its own, in the mode in which any thread that allocates ends that. The
// product is larger than those before: its buffers grow.
TEST(Staging, captures_go_on)
{
    if (faulty())
        return;
    ASSERT_NE(Stager::get(), nullptr);
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto find = [&](const char* name, auto*& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver, name));
        ASSERT_TRUE(function) << name;
    };
    int (*create)(void**, unsigned) = nullptr;
    int (*begin)(void*, int) = nullptr;
    int (*end)(void*, void**) = nullptr;
    int (*push)(void*) = nullptr;
    int (*retain)(void**, int) = nullptr;
    find("cuStreamCreate", create);
    find("cuStreamBeginCapture_v2", begin);
    find("cuStreamEndCapture", end);
    find("cuCtxPushCurrent_v2", push);
    find("cuDevicePrimaryCtxRetain", retain);
    void *context = nullptr, *stream = nullptr, *graph = nullptr;
    ASSERT_EQ(retain(&context, 0), 0);
    ASSERT_EQ(push(context), 0);
    ASSERT_EQ(create(&stream, 0), 0);
    ASSERT_EQ(begin(stream, 0), 0);
    Product(1100, 60, 2100, false, 0).expect_same(run);
    EXPECT_EQ(end(stream, &graph), 0);
}

TEST(Staging, without_elements_of_k_the_host_scales)
{
    Product product(4, 4, 4, false, 2);
    product.args.alpha = 0;
    product.expect_same(run);
}

// Behind all others: a call that was never made has failed nobody.
TEST(Staging, the_call_that_fails_was_made)
{
    if (!faulty())
        return;
    const std::string fault = std::getenv("EMU_FAULTS");  // call:number[+]=ERROR
    const size_t colon = fault.find(':');
    ASSERT_NE(colon, std::string::npos) << fault;
    EXPECT_GE(driver_calls(fault.substr(0, colon).c_str()), std::stoull(fault.substr(colon + 1)));
}

}  // namespace
}  // namespace hg::cblas
