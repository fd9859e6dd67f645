// White-box tests of the host backend: conversions, thread pool, OpenBLAS loader, and products that are
// larger than one block.
#include "arch/host/backend.hpp"
#include "arch/host/convert.hpp"
#include "arch/host/gemm.hpp"
#include "arch/host/openblas.hpp"
#include "arch/host/pool.hpp"
#include "child.hpp"
#include "handle.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hg {
namespace {

// The two half-precision types as numbers of arithmetic, independent of how the library converts.
struct Format {
    Type type;
    int significand, lowest, highest;  // bits of precision; exponents of the smallest and the infinite

    int fraction_bits() const { return significand - 1; }

    double value(uint16_t bits) const
    {
        const int exponent = (bits & 0x7fff) >> fraction_bits();
        const int fraction = bits & ((1 << fraction_bits()) - 1);
        const double sign = bits & 0x8000 ? -1.0 : 1.0;
        if (exponent == (0x7fff >> fraction_bits()))
            return fraction ? NAN : sign * INFINITY;
        if (exponent == 0)
            return sign * std::ldexp(fraction, lowest);
        return sign * std::ldexp(fraction + (1 << fraction_bits()), lowest + exponent - 1);
    }

    double rounded(double x) const
    {
        if (std::isnan(x) || std::isinf(x) || x == 0)
            return x;
        const int unit = std::max(std::ilogb(x) - fraction_bits(), lowest);
        const double result = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
        return std::fabs(result) >= std::ldexp(1.0, highest) ? std::copysign(INFINITY, x) : result;
    }
};

constexpr Format half{Type::F16, 11, -24, 16}, bfloat16{Type::BF16, 8, -133, 128};

float widen(Type type, uint16_t bits)
{
    return type == Type::F16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

uint16_t narrow(Type type, float x) { return type == Type::F16 ? float_to_half(x) : float_to_bfloat16(x); }

bool is_same(double a, double b)
{
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

class Conversion : public testing::TestWithParam<Format> {
protected:
    void expect_rounded(float x)
    {
        const uint16_t bits = narrow(format_.type, x);
        const double wanted = format_.rounded(x);
        if (!is_same(format_.value(bits), wanted))
            ADD_FAILURE() << std::hexfloat << x << " became " << format_.value(bits) << ", not " << wanted;
        else if (std::isnan(wanted) && std::signbit(x) != (bits >> 15))
            ADD_FAILURE() << "NaN lost its sign";
    }

    const Format format_ = GetParam();
};

TEST_P(Conversion, EveryPatternWidensExactlyAndComesBack)
{
    for (int bits = 0; bits < 65536; ++bits) {
        const auto pattern = static_cast<uint16_t>(bits);
        const float x = widen(format_.type, pattern);
        ASSERT_TRUE(is_same(x, format_.value(pattern))) << bits;
        ASSERT_EQ(std::signbit(x), bits >> 15 != 0) << bits;
        if (!std::isnan(x))
            ASSERT_EQ(narrow(format_.type, x), pattern);
        else
            ASSERT_TRUE(std::isnan(widen(format_.type, narrow(format_.type, x)))) << bits;
    }
}

TEST_P(Conversion, TiesAndTheirNeighboursRoundToNearestEven)
{
    for (int bits = 0; bits < 65536 && !HasFailure(); ++bits) {
        const double low = format_.value(static_cast<uint16_t>(bits));
        double high = format_.value(static_cast<uint16_t>(bits + 1));
        if (!std::isfinite(low) || (bits & 0x7fff) == 0x7fff)
            continue;
        if (std::isinf(high))
            high = std::copysign(std::ldexp(1.0, format_.highest), low);
        const auto tie = static_cast<float>(low / 2 + high / 2);
        for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 2 * tie)})
            expect_rounded(x);
    }
}

TEST_P(Conversion, FloatsFromTheWholeRangeRoundToNearestEven)
{
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32) && !HasFailure(); bits += 1021)
        expect_rounded(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (const uint32_t bits :
         {0x7f800000u, 0xff800000u, 0x7f800001u, 0x7fffffffu, 0xffbfffffu, 0x7f7fffffu, 1u})
        expect_rounded(std::bit_cast<float>(bits));
}

TEST_P(Conversion, ArraysAgreeWithSingleElements)
{
    std::vector<uint16_t> patterns(65536);
    for (size_t i = 0; i < patterns.size(); ++i)
        patterns[i] = static_cast<uint16_t>(i * 40503u);  // odd, so every pattern occurs
    for (const int64_t stride : {1, 2, 3, -1, -5}) {
        for (const int64_t count : {0, 1, 7, 31, 64, 255, 256, 257, 13001}) {
            const int64_t offset = stride < 0 ? 65535 : 3;
            std::vector<float> values(count + 1, -7.0f);
            to_float(format_.type, patterns.data(), offset, stride, count, values.data());
            std::vector<uint16_t> back(count + 2, 0xabcd);
            from_float(format_.type, values.data(), count, back.data(), 1);
            for (int64_t i = 0; i < count; ++i) {
                const float x = widen(format_.type, patterns[offset + i * stride]);
                ASSERT_TRUE(is_same(values[i], x)) << stride << " " << i;
                ASSERT_EQ(back[i + 1], narrow(format_.type, values[i])) << stride << " " << i;
            }
            ASSERT_EQ(values[count], -7.0f);
            ASSERT_EQ(back[0], 0xabcd);
            ASSERT_EQ(back[count + 1], 0xabcd);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Conversion, testing::Values(half, bfloat16),
                         [](const auto& format) { return std::string(name_of(format.param.type)); });

TEST(Pool, EveryIndexIsVisitedOnce)
{
    for (const int workers : {-1, 0, 1, 3, 8}) {
        Pool pool(workers);
        for (const int parts : {1, 2, 3, 7, 20}) {
            for (const int64_t count : {0, 1, 2, 5, 19, 20, 21, 1000}) {
                std::vector<std::atomic<int>> visits(count);
                pool.parallel_for(parts, count, [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                        ++visits[i];
                });
                for (const auto& visit : visits)
                    ASSERT_EQ(visit, 1) << workers << " " << parts << " " << count;
            }
        }
    }
}

TEST(Pool, RangesDependOnPartsAndCountAlone)
{
    const auto starts = [](int workers) {
        Pool pool(workers);
        std::vector<int> found(101);
        pool.parallel_for(
            7, 101, [&](int64_t begin, int64_t end) { found[begin] = static_cast<int>(end - begin); });
        return found;
    };
    EXPECT_EQ(starts(0), starts(5));
}

TEST(Pool, NoMoreThreadsThanPartsWorkAtOnce)
{
    Pool pool(6);
    std::atomic<int> working = 0, most = 0;
    for (int round = 0; round < 2000; ++round)
        pool.parallel_for(2, 2, [&](int64_t, int64_t) {
            const int now = ++working;
            if (now > most)
                most = now;
            std::this_thread::yield();
            --working;
        });
    EXPECT_LE(most, 2);
    EXPECT_EQ(working, 0);
}

TEST(Pool, ShortJobsInARowLoseNothing)
{
    Pool pool(3);
    int64_t sums[4] = {};
    for (int round = 0; round < 20000; ++round)
        pool.parallel_for(4, 4, [&](int64_t begin, int64_t) { sums[begin] += round; });
    for (const int64_t sum : sums)
        EXPECT_EQ(sum, int64_t{20000} * 19999 / 2);
}

// Uses the pool as a forked child may, destroying it at last.
bool works_alone(std::unique_ptr<Pool>& pool)
{
    const std::thread::id caller = std::this_thread::get_id();
    std::vector<int> visits(100);
    pool->parallel_for(4, 100, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && std::this_thread::get_id() == caller; ++i)
            ++visits[i];
    });
    pool.reset();
    return visits == std::vector<int>(100, 1);
}

TEST(Pool, AForkedChildWorksAloneAndDestroysIt)
{
    auto pool = std::make_unique<Pool>(3);
    EXPECT_TRUE(test::succeeds_in_child([&] { return works_alone(pool); }));
    EXPECT_TRUE(test::succeeds_in_child([&] {
        pool.reset();
        return true;
    }));
    std::atomic<int64_t> sum = 0;
    pool->parallel_for(4, 100, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100);
}

// The lock may be held, or a job half done, in the moment of the fork.
TEST(Pool, AThreadMayForkWhileOthersWork)
{
    auto pool = std::make_unique<Pool>(3);
    std::atomic<bool> stop = false;
    std::thread busy([&] {
        while (!stop)
            pool->parallel_for(4, 4, [](int64_t, int64_t) {});
    });
    for (int fork = 0; fork < 50 && !HasFailure(); ++fork)
        EXPECT_TRUE(test::succeeds_in_child([&] { return works_alone(pool); })) << fork;
    stop = true;
    busy.join();
}

TEST(OpenBlasLoader, AMissingLibraryIsAStatusThatNamesThePackages)
{
    const char* const names[] = {"libnot-there.so.0", "libnot-there.so", nullptr};
    OpenBlas blas;
    EXPECT_EQ(load_openblas(names, blas), HGEMM_STATUS_NOT_SUPPORTED);
    const std::string text = hgemm_last_error();
    for (const char* word :
         {"OpenBLAS", "libnot-there.so.0", "libopenblas0", "Debian", "openblas (Fedora)"})
        EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(OpenBlasLoader, ALibraryWithoutTheFunctionIsNotTaken)
{
    const char* const names[] = {"libc.so.6", nullptr};
    OpenBlas blas;
    EXPECT_EQ(load_openblas(names, blas), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("cblas_sgemm"), std::string::npos) << hgemm_last_error();
}

TEST(OpenBlasLoader, TheNextNameIsTried)
{
    const char* const names[] = {"libnot-there.so.0", "libc.so.6", openblas_names[0], nullptr};
    OpenBlas blas{};
    ASSERT_EQ(load_openblas(names, blas), ok) << hgemm_last_error();
    const float a = 3, b = 5;
    float c = NAN;
    blas.sgemm(101, 111, 111, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1);
    EXPECT_EQ(c, 15);
}

Device host_device(int threads)
{
    Device device{};
    device.ordinal = HGEMM_DEVICE_HOST;
    device.sm_count = threads;
    return device;
}

Problem plain_problem(int64_t m, int64_t n, int64_t k)
{
    Problem p{};
    p.m = m, p.n = n, p.k = k, p.batch = 1;
    p.type_ab = p.d.type = p.c.type = p.aux.type = Type::F16;
    p.a = {nullptr, nullptr, k, 1, 0};
    p.b = {nullptr, nullptr, k, 1, 0};
    p.d.ld = n;
    p.alpha = 1;
    return p;
}

TEST(HostPlan, TheDefaultWorkspaceServesEverySize)
{
    const Device device = host_device(4);
    const size_t most = host_backend.default_workspace(device);
    const int64_t sizes[] = {1, 2, 15, 511, 512, 513, 1023, 1024, 2047, 2048, 2049, 4097, int64_t{1} << 40};
    size_t largest = 0;
    for (const int64_t m : sizes)
        for (const int64_t n : sizes)
            for (const int64_t k : sizes)
                for (const bool transposed : {false, true}) {
                    Problem p = plain_problem(m, n, k);
                    if (transposed)
                        p.a.row_stride = p.b.row_stride = 1, p.a.k_stride = m, p.b.k_stride = n;
                    Plan plan{};
                    ASSERT_TRUE(host_backend.choose(p, device, Options{}, plan));
                    ASSERT_EQ(plan.workspace % 256, 0u);
                    ASSERT_GT(plan.workspace, 0u);
                    largest = std::max(largest, plan.workspace);
                }
    EXPECT_EQ(largest, most);
    EXPECT_LE(most, size_t{32} << 20);
}

TEST(HostPlan, WithoutKNoWorkspaceIsNeeded)
{
    Plan plan{};
    ASSERT_TRUE(host_backend.choose(plain_problem(3000, 3000, 0), host_device(1), Options{}, plan));
    EXPECT_EQ(plan.workspace, 0u);
}

TEST(HostPlan, TilesThatNoNumberHoldsAreMany)
{
    Problem p = plain_problem(int64_t{1} << 40, int64_t{1} << 40, 8);
    p.batch = int64_t{1} << 40;
    Plan plan{};
    ASSERT_TRUE(host_backend.choose(p, host_device(1), Options{}, plan));
    EXPECT_GT(plan.tiles, int64_t{1} << 30);
}

TEST(HostPlan, AnotherKernelsNameIsRefused)
{
    Options options{};
    std::snprintf(options.kernel, sizeof options.kernel, "sm90_something");
    Plan plan{};
    EXPECT_FALSE(host_backend.choose(plain_problem(8, 8, 8), host_device(1), options, plan));
    EXPECT_NE(std::string(plan.refusal).find("host_blocked"), std::string::npos);
    std::snprintf(options.kernel, sizeof options.kernel, "host_blocked");
    ASSERT_TRUE(host_backend.choose(plain_problem(8, 8, 8), host_device(1), options, plan));
    EXPECT_EQ(plan.why, Why::Forced);
}

// A host handle with exactly the workspace of one plan, filled with NaN, and a guard behind it.
class HostHandle {
public:
    explicit HostHandle(int threads) : handle_{} { handle_.device = host_device(threads); }
    ~HostHandle()
    {
        if (state_)
            host_backend.close(state_);
    }
    HostHandle(const HostHandle&) = delete;
    HostHandle& operator=(const HostHandle&) = delete;

    Status open() { return host_backend.open(handle_.device, &state_); }

    Status run(const Problem& p, size_t missing = 0)
    {
        Plan plan{};
        if (!host_backend.choose(p, handle_.device, handle_.options, plan))
            return HGEMM_STATUS_INTERNAL;
        std::vector<float> memory(plan.workspace / sizeof(float) + 64, NAN);
        memory.back() = 42;
        handle_.own = {memory.data(), plan.workspace - missing, nullptr, 0};
        Packed packed;
        Status status = host_backend.pack(handle_, p, plan, packed);
        if (status == ok)
            status = host_backend.launch(handle_, state_, plan, packed);
        for (size_t i = plan.workspace / sizeof(float); i + 1 < memory.size(); ++i)
            EXPECT_TRUE(std::isnan(memory[i])) << "written behind the workspace";
        return status;
    }

private:
    Handle handle_;
    void* state_ = nullptr;
};

TEST(HostRun, TooSmallAWorkspaceIsAStatus)
{
    HostHandle handle(1);
    ASSERT_EQ(handle.open(), ok) << hgemm_last_error();
    EXPECT_EQ(handle.run(plain_problem(8, 8, 8), 1), HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    EXPECT_EQ(std::string(hgemm_last_error()), "needs 768 bytes of workspace, has 767");
}

struct Shape {
    int64_t m, n, k;
};

class HostBlocks : public testing::TestWithParam<Shape> {};

// Small integers: every order of summation is exact, so any wrong block shows.
TEST_P(HostBlocks, ProductsBeyondOneBlockAreExactForAnyThreads)
{
    const auto [m, n, k] = GetParam();
    const auto number = [](int64_t i) {
        return static_cast<int>((static_cast<uint64_t>(i) * 2654435761u >> 20) % 5) - 2;
    };
    std::vector<uint16_t> a(m * k), b(n * k);
    for (int64_t i = 0; i < m * k; ++i)
        a[i] = float_to_half(static_cast<float>(number(i)));
    for (int64_t i = 0; i < n * k; ++i)
        b[i] = float_to_half(static_cast<float>(number(i + 77)));
    for (int form = 0; form < 4; ++form) {
        const bool ta = form & 1, tb = form & 2;
        Problem p = plain_problem(m, n, k);
        p.d.type = Type::F32;
        p.a = {a.data(), nullptr, ta ? 1 : k, ta ? m : 1, 0};
        p.b = {b.data(), nullptr, tb ? 1 : k, tb ? n : 1, 0};
        std::vector<int> wanted(m * n);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
                for (int64_t q = 0; q < k; ++q)
                    wanted[i * n + j] += number(i * p.a.row_stride + q * p.a.k_stride) *
                                         number(j * p.b.row_stride + q * p.b.k_stride + 77);
        for (const int threads : {1, 2, 5}) {
            HostHandle handle(threads);
            ASSERT_EQ(handle.open(), ok) << hgemm_last_error();
            std::vector<float> d(m * n, NAN);
            p.d.ptr = d.data();
            ASSERT_EQ(handle.run(p), ok) << hgemm_last_error();
            for (int64_t i = 0; i < m * n; ++i)
                ASSERT_EQ(d[i], static_cast<float>(wanted[i])) << "form " << form << " element " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, HostBlocks,
                         testing::Values(Shape{block_m + 1, 17, block_k + 1},
                                         Shape{18, 2 * block_n + 3, 40}, Shape{33, 31, 3 * block_k + 5},
                                         Shape{block_m + 7, block_n + 9, 2},
                                         Shape{1, block_n + 1, block_k + 1},
                                         Shape{block_m + 1, 1, block_k + 1}));

}  // namespace
}  // namespace hg
