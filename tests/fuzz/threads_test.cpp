// Threads with handles of their own: results, plans and error texts are those of one thread alone. Made for
// the thread sanitizer, which sees what they share. The handles are on the device that is there, or on the
// host.
#include "hgemm.h"
#include "src/tools/support/number.hpp"
#if defined(HGEMM_FUZZ_CBLAS)
#include "hgemm_cblas.h"
#endif

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hg::fuzz {
namespace {

constexpr int thread_count = 8, rounds = 40;

// Runs work(thread) in all threads at once.
void in_threads(const std::function<void(int)>& work)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back(work, i);
    for (std::thread& thread : threads)
        thread.join();
}

struct Sizes {
    int64_t m, n, k;
};

Sizes sizes_of(int number)
{
    test::Random random(static_cast<uint64_t>(number));
    // Some of several blocks of rows, so that a handle's own threads take part.
    const int64_t m = number % 8 == 0 ? 300 : 1 + random.below(40);
    return {m, 1 + random.below(200), 1 + random.below(70)};
}

std::vector<uint16_t> operand(int64_t count, uint64_t seed)
{
    std::vector<uint16_t> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<uint16_t>(test::encode(HGEMM_BF16, test::normal(seed, i)));
    return values;
}

using Product = std::function<void(const Sizes&, const uint16_t* a, const uint16_t* b, float* d)>;

std::vector<float> result_of(int number, const Product& product)
{
    const Sizes s = sizes_of(number);
    const std::vector<uint16_t> a = operand(s.m * s.k, 1), b = operand(s.k * s.n, 2);
    std::vector<float> d(static_cast<size_t>(s.m * s.n));
    product(s, a.data(), b.data(), d.data());
    return d;
}

void multiply(hgemm_handle_t handle, const Sizes& s, const uint16_t* a, const uint16_t* b, float* d)
{
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.type_ab = HGEMM_BF16;
    g.type_d = g.type_c = HGEMM_F32;
    g.m = s.m;
    g.n = s.n;
    g.k = s.k;
    g.a = a;
    g.lda = s.m;
    g.b = b;
    g.ldb = s.k;
    g.d = d;
    g.ldd = s.m;
    EXPECT_EQ(hgemm_gemm_ex(handle, &g), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

// In one thread, then in all, each from another product on.
void expect_same(const Product& product)
{
    std::vector<std::vector<float>> serial;
    for (int i = 0; i < rounds; ++i)
        serial.push_back(result_of(i, product));
    in_threads([&](int thread) {
        for (int i = 0; i < rounds; ++i) {
            const int number = (i + 5 * thread) % rounds;
            EXPECT_EQ(result_of(number, product), serial[static_cast<size_t>(number)]) << number;
        }
    });
}

TEST(Threads, make_and_destroy_handles)
{
    expect_same([](const Sizes& s, const uint16_t* a, const uint16_t* b, float* d) {
        hgemm_handle_t handle = nullptr;
        ASSERT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        multiply(handle, s, a, b, d);
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_NOT_INITIALIZED);
    });
}

TEST(Threads, keep_a_handle_each)
{
    expect_same([](const Sizes& s, const uint16_t* a, const uint16_t* b, float* d) {
        thread_local const hgemm_handle_t handle = [] {
            hgemm_handle_t made = nullptr;
            EXPECT_EQ(hgemm_create_on(&made, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS);
            return made;
        }();
        multiply(handle, s, a, b, d);
    });
}

#if defined(HGEMM_FUZZ_CBLAS)
TEST(Threads, call_cblas)
{
    expect_same([](const Sizes& s, const uint16_t* a, const uint16_t* b, float* d) {
        const auto narrow = [](int64_t size) { return static_cast<int>(size); };
        cblas_sbgemm(HGEMM_COL_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, narrow(s.m), narrow(s.n), narrow(s.k),
                     1, a, narrow(s.m), b, narrow(s.k), 0, d, narrow(s.m));
        EXPECT_EQ(hgemm_cblas_status(), HGEMM_STATUS_SUCCESS);
    });
}
#endif

TEST(Threads, have_errors_of_their_own)
{
    in_threads([](int thread) {
        hgemm_handle_t handle = nullptr;
        ASSERT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        for (int i = 1; i <= rounds; ++i) {
            const int64_t m = -1000 * (thread + 1) - i;
            EXPECT_EQ(hgemm_nn(handle, m, 1, 1, 1, nullptr, 1, nullptr, 1, 0, nullptr, 1),
                      HGEMM_STATUS_INVALID_ARGUMENT);
            EXPECT_NE(std::string(hgemm_last_error()).find(std::to_string(m)), std::string::npos)
                << hgemm_last_error();
            EXPECT_EQ(hgemm_last_error_argument(), 2);
        }
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    });
}

std::vector<std::string> plans()
{
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(hgemm_create(&handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    std::vector<std::string> lines;
    for (int i = 0; i < rounds; ++i) {
        hgemm_args_t g;
        hgemm_args_init(&g, sizeof g);
        const Sizes s = sizes_of(i);
        g.m = 8 * s.m;
        g.n = 16 * s.n;
        g.k = 32 * s.k;
        g.lda = g.ldd = g.m;
        g.ldb = g.k;
        char line[1024] = "";
        EXPECT_EQ(hgemm_explain(handle, &g, line, sizeof line), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        lines.emplace_back(line);
    }
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    return lines;
}

TEST(Threads, plan_alike)
{
    const std::vector<std::string> alone = plans();
    if (std::getenv("EMU_ARCH")) {
        EXPECT_EQ(alone[0].find("backend=host"), std::string::npos) << "the virtual device was not found";
    }
    in_threads([&](int) { EXPECT_EQ(plans(), alone); });
}

}  // namespace
}  // namespace hg::fuzz
