// Which kernels sm80 chooses, where it cuts K into slices, and when sm120 leaves a problem to it.
#include "devices.hpp"

#include "arch/common/host/mma_sync_model.hpp"
#include "arch/sm80/choose.hpp"
#include "arch/sm80/kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace hg {
namespace {

constexpr size_t workspace = size_t{16} << 20;

Plan plan_for(const Device& device, const Problem& problem, const char* kernel = "",
              Mode mode = Mode::Default, int sm_limit = 0, size_t counters = 4096)
{
    Options options{};
    options.workspace = workspace;
    options.counters = counters;
    options.mode = mode;
    options.sm_limit = sm_limit;
    std::strcpy(options.kernel, kernel);
    Plan plan{};
    EXPECT_TRUE(sm80::choose(problem, device, options, plan)) << plan.refusal;
    return plan;
}

bool fits(const Device& device, const Problem& problem, const std::string& kernel, int split)
{
    Options options{};
    options.workspace = workspace;
    options.counters = 4096;
    options.split = split;
    std::strcpy(options.kernel, kernel.c_str());
    Plan plan{};
    return sm80::choose(problem, device, options, plan);
}

// CTAs of 128 threads, of which registers would let nine on an SM.
TEST(Sm80Choice, ThreadsBoundTheCtasOfAnSm)
{
    const auto ctas = [](int cc) { return count_resident_ctas(gpu(cc, 148, 227), 1024, 128, 16, 8); };
    EXPECT_EQ(ctas(100), 9);
    EXPECT_EQ(ctas(107), 8);
    EXPECT_EQ(ctas(120), 9);
}

TEST(Sm80Choice, FewRowsAreCutAlongK)
{
    NEEDS_CUDA_BUILD();
    const Problem p = linear_layer(8, 1024, 8192);
    const Plan plan = plan_for(a100, p);
    EXPECT_EQ(sm80::kernels[plan.kernel].tile_m, 16);
    EXPECT_GT(plan.split, 1);
    EXPECT_EQ(plan.grid, plan.tiles * plan.split);
    EXPECT_EQ(plan.workspace, sizeof(float) * 16 * static_cast<size_t>(sm80::kernels[plan.kernel].tile_n) *
                                  static_cast<size_t>(plan.tiles * plan.split));
    EXPECT_EQ(plan_for(a100, p, "", Mode::BatchInvariant).split, 1);
    EXPECT_EQ(plan_for(a100, p, "", Mode::Default, 0, 0).split, 1) << "without counters";
    EXPECT_LE(plan_for(a100, p, "", Mode::Default, 16).grid, 16) << "all slices in one launch";
}

TEST(Sm80Choice, NoSliceIsEmpty)
{
    NEEDS_CUDA_BUILD();
    const Problem p = linear_layer(64, 64, 5 * 64 + 8);
    EXPECT_TRUE(fits(a100, p, "sm80_64x64x64_s4", 6));
    EXPECT_FALSE(fits(a100, p, "sm80_64x64x64_s4", 7));
    EXPECT_FALSE(fits(a100, p, "sm80_any_64x64x32", 2));
}

TEST(Sm80Choice, MajorsAndSharedMemoryAreRespected)
{
    NEEDS_CUDA_BUILD();
    Problem p = linear_layer(64, 64, 512);
    EXPECT_TRUE(fits(a100, p, "sm80_16x64x64_s8", 1));
    EXPECT_TRUE(fits(a100, p, "sm80_64x16x64_s6", 1));
    EXPECT_TRUE(fits(a100, p, "sm80_256x128x32_s6", 1));
    EXPECT_FALSE(fits(a10, p, "sm80_256x128x32_s6", 1));
    EXPECT_TRUE(fits(a10, p, "sm80_256x128x32_s4", 1));
    p.a = {p.a.ptr, nullptr, 1, 64, 0};
    EXPECT_FALSE(fits(a100, p, "sm80_16x64x64_s8", 1));
    EXPECT_TRUE(fits(a100, p, "sm80_64x16x64_s6", 1));
}

// Kernels but `any` multiply a line's pitch in bytes as a number of 32 bits.
TEST(Sm80Choice, PitchesOf4GiBAreReadElementByElement)
{
    NEEDS_CUDA_BUILD();
    Problem p = linear_layer(64, 64, 512);
    p.b.row_stride = (int64_t{1} << 31) - 8;
    EXPECT_TRUE(fits(a100, p, "sm80_64x64x64_s4", 1));
    p.b.row_stride = int64_t{1} << 31;
    EXPECT_FALSE(fits(a100, p, "sm80_64x64x64_s4", 1));
    EXPECT_FALSE(fits(a100, p, "sm80_unaligned_64x64x64", 1));
    EXPECT_TRUE(fits(a100, p, "sm80_any_64x64x32", 1));
}

// "sm80_unaligned" or "copies": how operands are read that no aligned kernel can.
std::string reading(const Problem& p, size_t room = size_t{64} << 20, const char* kernel = "")
{
    Options options{};
    options.workspace = room;
    options.counters = 4096;
    std::strcpy(options.kernel, kernel);
    Plan plan{};
    if (!sm80::choose(p, a100, options, plan))
        return plan.refusal;
    EXPECT_LE(plan.workspace, room);
    const std::string name = sm80::kernels[plan.kernel].name;
    EXPECT_FALSE(plan.repacks() && (name.starts_with("sm80_any") || name.starts_with("sm80_unaligned")));
    return plan.repacks() ? "copies" : name.substr(0, name.find('_', 5));
}

TEST(Sm80Choice, UnalignedOperandsAreCopiedWhereThatPays)
{
    NEEDS_CUDA_BUILD();
    Problem few = linear_layer(4, 4096, 4096), many = linear_layer(2048, 4096, 4096);
    few.b.row_stride = many.b.row_stride = 4097;
    EXPECT_EQ(reading(few), "sm80_unaligned");
    EXPECT_EQ(reading(many), "copies");
    EXPECT_EQ(reading(many, 0), "sm80_unaligned");
    EXPECT_EQ(reading(few, size_t{64} << 20, "sm80_16x64x64_s8"), "copies");
    EXPECT_NE(reading(few, 0, "sm80_16x64x64_s8").find("not aligned to 16 bytes"), std::string::npos);
    many.a.k_stride = 2;
    EXPECT_EQ(reading(many, 0), "sm80_any");
    many.a.array = reinterpret_cast<void* const*>(0x1000);
    EXPECT_EQ(reading(many, 0), "sm80_any");
    many.a.k_stride = 1;
    EXPECT_EQ(reading(many, 0), "sm80_unaligned");
}

TEST(Sm80Choice, CopiesAndSlicesShareTheWorkspace)
{
    NEEDS_CUDA_BUILD();
    Problem p = linear_layer(128, 128, 8192);
    p.a.row_stride = 8193;
    Options options{};
    options.counters = 4096;
    options.split = 4;
    std::strcpy(options.kernel, "sm80_64x64x64_s4");
    const size_t copy = size_t{128} * 8192 * 2, sums = size_t{4} * 128 * 128 * sizeof(float);
    options.workspace = copy + sums;
    Plan plan{};
    EXPECT_TRUE(sm80::choose(p, a100, options, plan)) << plan.refusal;
    EXPECT_EQ(plan.workspace, copy + sums);
    EXPECT_TRUE(plan.repack_a && !plan.repack_b);
    --options.workspace;
    EXPECT_FALSE(sm80::choose(p, a100, options, plan));
}

TEST(Sm80Choice, Sm120LeavesFewRowsToSm80)
{
    NEEDS_CUDA_BUILD();
    const auto backend = [](int64_t m) {
        return std::string(
            choose(rtx5090, linear_layer(m, 4096, 4096), "", "", workspace).plan.backend->name);
    };
    EXPECT_EQ(backend(1), "sm80");
    EXPECT_EQ(backend(16), "sm80");
    EXPECT_EQ(backend(4096), "sm120");
}

}  // namespace
}  // namespace hg
