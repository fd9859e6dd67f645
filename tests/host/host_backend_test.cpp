// White-box tests of the host backend: OpenBLAS loader, plans, and GEMMs that are larger than one block.
#include "arch/host/backend.hpp"
#include "arch/host/gemm.hpp"
#include "arch/host/openblas.hpp"
#include "arch/host/packed/kernels.hpp"
#include "src/base/convert.hpp"
#include "src/run/handle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace hg {
namespace {

TEST(OpenBlasLoader, OfAMissingLibraryThePackagesAreNamed)
{
    const char* const names[] = {"libnot-there.so.0", "libnot-there.so", nullptr};
    const OpenBlas blas = load_openblas(names);
    EXPECT_EQ(blas.sgemm, nullptr);
    const std::string text = blas.missing;
    for (const char* word :
         {"OpenBLAS", "libnot-there.so.0", "libopenblas0", "Debian", "openblas (Fedora)"})
        EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(OpenBlasLoader, ALibraryWithoutTheFunctionIsNotTaken)
{
    const char* const names[] = {"libc.so.6", nullptr};
    const OpenBlas blas = load_openblas(names);
    EXPECT_EQ(blas.sgemm, nullptr);
    EXPECT_NE(std::string(blas.missing).find("cblas_sgemm"), std::string::npos) << blas.missing;
}

TEST(OpenBlasLoader, TheNextNameIsTried)
{
    const char* const names[] = {"libnot-there.so.0", "libc.so.6", openblas_names[0], nullptr};
    const OpenBlas blas = load_openblas(names);
    ASSERT_NE(blas.sgemm, nullptr) << blas.missing;
    const float a = 3, b = 5;
    float c = NAN;
    blas.sgemm(101, 111, 111, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1);
    EXPECT_EQ(c, 15);
}

// A stand-in that ends the process if it is called.
TEST(OpenBlasLoader, ABuildWith64BitIntegersIsPassedOver)
{
    const char* const names[] = {OPENBLAS_64, nullptr};
    OpenBlas blas = load_openblas(names);
    EXPECT_EQ(blas.sgemm, nullptr);
    const std::string text = blas.missing;
    EXPECT_NE(text.find("(Fedora): " OPENBLAS_64 " has 64-bit integers"), std::string::npos) << text;
    const char* const more_names[] = {"libnot-there.so.0", OPENBLAS_64, openblas_names[0], nullptr};
    blas = load_openblas(more_names);
    ASSERT_NE(blas.sgemm, nullptr) << blas.missing;
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
    p.a = {nullptr, nullptr, k, 1, 0, 0};
    p.b = {nullptr, nullptr, k, 1, 0, 0};
    p.d.ld = n;
    p.alpha = 1;
    return p;
}

Options forced(const char* kernel)
{
    Options options{};
    std::snprintf(options.kernel, sizeof options.kernel, "%s", kernel);
    return options;
}

int row_of(const std::string& kernel)
{
    int row = 0;
    while (host_backend.kernels[row].name != kernel)
        ++row;
    return row;
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
                    ASSERT_EQ(plan.workspace > 0, plan.kernel != row_of("host_rows"));
                    largest = std::max(largest, plan.workspace);
                    Options options = forced("host_packed");
                    options.workspace = most;
                    ASSERT_TRUE(host_backend.choose(p, device, options, plan));
                    ASSERT_LE(plan.workspace, most);
                    EXPECT_TRUE(m < 511 || n < 511 || k < 511 || plan.grid == 4)
                        << m << " " << n << " " << k;
                    ASSERT_TRUE(host_backend.choose(p, device, forced("host_blocked"), plan));
                    largest = std::max(largest, plan.workspace);
                }
    constexpr size_t for_trees = size_t{64} << 20;
    EXPECT_EQ(largest + for_trees, most);
    EXPECT_LE(largest, size_t{32} << 20);
}

// A workspace of the caller's that host_blocked alone can use.
TEST(HostPlan, ALittleWorkspaceIsUsedByTheKernelThatNeedsLess)
{
    if (!openblas().sgemm)
        GTEST_SKIP() << "OpenBLAS was not found";
    const Problem p = plain_problem(9, 9, 9);
    Plan plan{};
    Options options{};
    for (const size_t workspace : {1536, 4096}) {
        options.workspace = workspace;
        ASSERT_TRUE(host_backend.choose(p, host_device(1), options, plan));
        EXPECT_LE(plan.workspace, workspace);
    }
    options.workspace = 1536;
    options.mode = Mode::BatchInvariant;  // has one kernel
    ASSERT_TRUE(host_backend.choose(p, host_device(1), options, plan));
    EXPECT_EQ(plan.kernel, row_of("host_packed"));
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
    Plan plan{};
    EXPECT_FALSE(
        host_backend.choose(plain_problem(8, 8, 8), host_device(1), forced("sm90_something"), plan));
    for (const char* kernel : {"host_blocked", "host_rows"}) {
        EXPECT_NE(std::string(plan.refusal).find(kernel), std::string::npos);
        Plan own{};
        ASSERT_TRUE(host_backend.choose(plain_problem(8, 8, 8), host_device(1), forced(kernel), own));
        EXPECT_EQ(own.why, Why::Forced);
        EXPECT_EQ(own.kernel, row_of(kernel));
    }
}

// The kernel, or why there is none.
std::string chosen(const Problem& p, const Options& options = {})
{
    Plan plan{};
    const bool found = host_backend.choose(p, host_device(1), options, plan);
    return found ? host_backend.kernels[plan.kernel].name : plan.refusal;
}

TEST(HostPlan, AmxServesBfloat16InTheDefaultMode)
{
    const std::string refused = "host_amx is for bf16 and a processor that has AMX";
    const bool has_amx = amx_kernels() && amx_kernels()->runs_here();
    Problem p = plain_problem(100, 100, 100);
    p.type_ab = Type::F16;
    EXPECT_EQ(chosen(p, forced("host_amx")), refused);
    EXPECT_NE(chosen(p), "host_amx");
    p.type_ab = Type::BF16;
    EXPECT_EQ(chosen(p, forced("host_amx")), has_amx ? "host_amx" : refused);
    EXPECT_EQ(chosen(p) == "host_amx", has_amx);
    Options invariant{};
    invariant.mode = Mode::BatchInvariant;
    EXPECT_EQ(chosen(p, invariant), "host_packed");
    // Few rows, and a large operand whose rows are contiguous along K, or are not.
    p.m = 3;
    p.b.row_stride = 100, p.b.k_stride = 1;
    EXPECT_EQ(chosen(p) == "host_amx", has_amx);
    p.b.row_stride = 1, p.b.k_stride = 100;
    EXPECT_EQ(chosen(p), "host_rows");
    p.m = 2;
    p.b.row_stride = 100, p.b.k_stride = 1;
    EXPECT_EQ(chosen(p), "host_rows");
}

TEST(HostPlan, UpToEightRowsOrColumnsHaveTheirOwnKernel)
{
    const std::string refused = "host_rows is for";
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 300}, {300, 1}, {8, 300}, {300, 8}, {8, 8}}) {
        EXPECT_EQ(chosen(plain_problem(m, n, 40)), "host_rows") << m << " " << n;
        EXPECT_EQ(chosen(plain_problem(m, n, 40), forced("host_blocked")), "host_blocked");
    }
    EXPECT_EQ(chosen(plain_problem(9, 9, 40)), "host_packed");
    EXPECT_EQ(chosen(plain_problem(9, 9, 40), forced("host_rows")).substr(0, refused.size()), refused);
    // One kernel alone has the batch-invariant mode.
    Options invariant = forced("host_rows");
    invariant.mode = Mode::BatchInvariant;
    EXPECT_EQ(chosen(plain_problem(1, 300, 40), invariant), "host_packed alone has a batch-invariant mode");
    *invariant.kernel = '\0';
    for (const int64_t m : {1, 8, 9, 3000})
        EXPECT_EQ(chosen(plain_problem(m, 3000, 40), invariant), "host_packed");
    // The large operand is contiguous in no dimension; the few rows may have any strides.
    Problem p = plain_problem(8, 300, 40);
    p.b = {nullptr, nullptr, 80, 2, 0, 0};
    EXPECT_EQ(chosen(p), "host_packed");
    p.b = {nullptr, nullptr, 1, 300, 0, 0};
    p.a = {nullptr, nullptr, 1000, -3, 0, 0};
    EXPECT_EQ(chosen(p), "host_rows");
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

    Status run(const Problem& p, const char* kernel, size_t missing = 0)
    {
        Plan plan{};
        handle_.options = forced(kernel);
        handle_.options.workspace = host_backend.default_workspace(handle_.device);
        if (!host_backend.choose(p, handle_.device, handle_.options, plan))
            return HGEMM_STATUS_INTERNAL;
        std::vector<float> memory(plan.workspace / sizeof(float) + 64, NAN);
        memory.back() = 42;
        handle_.own = {memory.data(), plan.workspace - missing, nullptr, 0, 0};
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
    EXPECT_EQ(handle.run(plain_problem(9, 9, 9), "host_blocked", 1), HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    EXPECT_EQ(std::string(hgemm_last_error()), "needs 1536 bytes of workspace, has 1535");
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
        p.a = {a.data(), nullptr, ta ? 1 : k, ta ? m : 1, 0, 0};
        p.b = {b.data(), nullptr, tb ? 1 : k, tb ? n : 1, 0, 0};
        std::vector<int> wanted(m * n);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
                for (int64_t q = 0; q < k; ++q)
                    wanted[i * n + j] += number(i * p.a.row_stride + q * p.a.k_stride) *
                                         number(j * p.b.row_stride + q * p.b.k_stride + 77);
        for (const char* const kernel : {"host_blocked", "host_packed"})
            for (const int threads : {1, 2, 5}) {
                HostHandle handle(threads);
                ASSERT_EQ(handle.open(), ok) << hgemm_last_error();
                std::vector<float> d(m * n, NAN);
                p.d.ptr = d.data();
                ASSERT_EQ(handle.run(p, kernel), ok) << hgemm_last_error();
                for (int64_t i = 0; i < m * n; ++i)
                    ASSERT_EQ(d[i], static_cast<float>(wanted[i]))
                        << kernel << " form " << form << " at " << i;
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
