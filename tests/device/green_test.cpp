// Streams of green contexts, which have some of a device's SMs: products on them are right, and
// planned for those.
#include "../conformance.hpp"
#include "gpu.hpp"
#include "green_context.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace hg::test {
namespace {

constexpr unsigned few = 8;

// A number behind `name` in a plan's line.
int64_t number_of(const std::string& plan, const std::string& name)
{
    const size_t at = plan.find(" " + name + "=");
    return at == std::string::npos ? -1 : std::atoll(plan.c_str() + at + name.size() + 2);
}

GemmCase many_tiles(uint64_t seed)
{
    GemmCase g;
    g.type_ab = g.type_c = g.type_d = halves[seed % 2];
    g.transa = ops[seed / 2 % 2];
    g.m = 200 + 8 * static_cast<int64_t>(seed);
    g.n = 136;
    g.k = 72;
    g.aligned = seed % 4 != 3;
    g.a.gap = 1;
    g.seed = seed;
    return g;
}

class DeviceGreen : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override
    {
        NEEDS_BACKEND(GetParam());
        if (const std::string why = GreenContext::absent(); !why.empty())
            GTEST_SKIP() << why;
        if (Cuda::get()->sm_count() < 2 * static_cast<int>(few))
            GTEST_SKIP() << "needs " << 2 * few << " SMs";
    }
};

void set_stream(const Library& library, CUstream_st* stream)
{
    ASSERT_EQ(hgemm_set_stream(library.handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

void expect_right(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << g.print();
}

// The same products before, on and behind a green stream, so that plans of one are not taken for the other.
TEST_P(DeviceGreen, products_are_right)
{
    const auto library = make(GetParam());
    const GreenContext green(0, few);
    for (CUstream_st* stream :
         {static_cast<CUstream_st*>(nullptr), green.stream(), static_cast<CUstream_st*>(nullptr)}) {
        set_stream(*library, stream);
        for (uint64_t seed = 0; seed < 4; ++seed)
            expect_right(*library, many_tiles(seed));
    }
}

// What a handle plans on a stream, by the grid of a kernel that stays on its SMs from tile to
// tile.
int64_t grid_of(Library& library)
{
    GemmCase g = many_tiles(0);
    g.m = g.n = 1024;
    Trial trial(g, library.memory());
    const std::string plan = library.explain(trial.args());
    EXPECT_GT(number_of(plan, "grid"), 0) << plan;
    return number_of(plan, "grid");
}

std::string persistent_kernel(const std::string& backend)
{
    return backend == "sm100"   ? "sm100_128x128_static"
           : backend == "sm90"  ? "sm90_pingpong_128x128"
           : backend == "sm120" ? "sm120_128x128x64_s3"
                                : "";
}

TEST_P(DeviceGreen, plans_are_for_its_SMs)
{
    const std::string kernel = persistent_kernel(GetParam());
    if (kernel.empty())
        GTEST_SKIP() << GetParam() << " has a thread block for each tile";
    Library library(Cuda::get(), GetParam(), kernel);
    ASSERT_TRUE(library.created()) << library.story();
    const int64_t on_all = grid_of(library);
    const GreenContext green(0, few);
    set_stream(library, green.stream());
    const int64_t on_few = grid_of(library);
    EXPECT_LE(on_few, green.sm_count());
    EXPECT_LT(on_few, on_all);
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 4), HGEMM_STATUS_SUCCESS);
    EXPECT_LE(grid_of(library), 4) << "the caller's own limit is the smaller one";
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 1000), HGEMM_STATUS_SUCCESS);
    EXPECT_LE(grid_of(library), green.sm_count()) << "the partition is the smaller one";
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 0), HGEMM_STATUS_SUCCESS);
    set_stream(library, nullptr);
    EXPECT_EQ(grid_of(library), on_all);
}

// Slices that exchange sums in global memory should run at the same time: a place is needed for each.
TEST_P(DeviceGreen, slices_that_exchange_sums_have_places)
{
    if (std::string(GetParam()) != "sm90")
        GTEST_SKIP() << GetParam() << " has no such slices";
    Library library(Cuda::get(), GetParam(), "sm90_splitk_global_128x112/split=4");
    ASSERT_TRUE(library.created()) << library.story();
    const GreenContext green(0, few);
    set_stream(library, green.stream());
    GemmCase g = many_tiles(0);
    g.m = 64;
    g.n = 128;
    g.k = 1024;
    expect_right(library, g);
    g.m = 256;  // 32 slices
    Trial trial(g, library.memory());
    EXPECT_EQ(library.start(trial.args()), HGEMM_STATUS_NOT_SUPPORTED) << library.explain(trial.args());
}

TEST_P(DeviceGreen, handle_of_a_current_green_context)
{
    const GreenContext green(0, few);
    Cuda& cuda = *Cuda::get();
    cuda.make_current(green.context());
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(hgemm_create(&handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_set_stream(handle, green.stream()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_set_stream(handle, nullptr), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    cuda.make_current(cuda.context());
    const Stream outside;
    EXPECT_EQ(hgemm_set_stream(handle, outside), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

TEST_P(DeviceGreen, stream_of_another_device_is_refused)
{
    if (device_count() < 2)
        GTEST_SKIP() << "needs two devices";
    const auto library = make(GetParam());
    const GreenContext green(1, few);
    EXPECT_EQ(hgemm_set_stream(library->handle(), green.stream()), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_last_error_argument(), 2);
    EXPECT_NE(std::string(hgemm_last_error()).find("of a green context of context"), std::string::npos)
        << hgemm_last_error();
    expect_right(*library, many_tiles(1));
}

INSTANTIATE_TEST_SUITE_P(, DeviceGreen, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
