// White-box tests of HGEMM_KERNEL: what may follow a kernel's name, and who refuses it.
#include "devices.hpp"
#include "src/plan/options.hpp"
#include "src/tools/support/environment.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hg {
namespace {

TEST(Settings, BehindAKernelsNameAreRead)
{
    const auto read = [](const char* text, Options& options) {
        const test::Variable kernel("HGEMM_KERNEL", text);
        return read_options(options);
    };
    Options options{};
    ASSERT_EQ(read("sm90_splitk_64x64/split=2/swap_ab=1/pdl=late", options), ok);
    EXPECT_STREQ(options.kernel, "sm90_splitk_64x64");
    EXPECT_EQ(options.split, 2);
    EXPECT_EQ(options.swap_ab, SwapAb::On);
    EXPECT_EQ(options.pdl, Pdl::Late);
    for (const auto& [text, pdl] : {std::pair{"x/pdl=early", Pdl::Early}, {"x/pdl=off", Pdl::Off}}) {
        Options other{};
        ASSERT_EQ(read(text, other), ok);
        EXPECT_EQ(other.pdl, pdl);
    }
    EXPECT_EQ(read("x/later", options), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(hgemm_last_error()).find("pdl=off|late|early"), std::string::npos);
}

TEST(Settings, SlicesOfKAreAWholeNumber)
{
    const auto read = [](const std::string& value) {
        const test::Variable kernel("HGEMM_KERNEL", "x/split=" + value + "/swap_ab=0");
        Options options{};
        const Status status = read_options(options);
        return status == ok ? options.split : -1;
    };
    EXPECT_EQ(read("1"), 1);
    EXPECT_EQ(read("16"), 16);
    for (const char* wrong : {"", "0", "-1", "+4", " 4", "4junk", "4 ", "4.5", "0x4", "99999999999"}) {
        EXPECT_EQ(read(wrong), -1) << wrong;
        EXPECT_NE(std::string(hgemm_last_error()).find("'split=" + std::string(wrong) + "'"),
                  std::string::npos)
            << hgemm_last_error();
    }
}

// What is wrong with HGEMM_KERNEL; "" where it is obeyed.
std::string refusal_of(const Device& device, const std::string& kernel, Mode mode = Mode::Default,
                       int sm_limit = 0)
{
    const test::Variable variable("HGEMM_KERNEL", kernel);
    Options options{};
    options.mode = mode;
    options.sm_limit = sm_limit;
    const Backend* candidates[max_backends];
    int count = 0;
    Plan plan{};
    Status status = read_options(options);
    if (status == ok)
        status = check_names(options);
    if (status == ok)
        status = find_backends(device, options, candidates, count);
    if (status == ok)
        status = make_plan(linear_layer(512, 512, 4096), device, options,
                           {candidates, static_cast<size_t>(count)}, plan);
    return status == ok ? "" : hgemm_last_error();
}

void expect_refused(const Device& device, const std::string& kernel, const std::string& setting)
{
    const std::string text = refusal_of(device, kernel + setting);
    const std::string name = setting.substr(0, setting.find('='));
    EXPECT_NE(text.find("kernel " + kernel + " (HGEMM_KERNEL)"), std::string::npos)
        << setting << ": " << text;
    EXPECT_NE(text.find(name), std::string::npos) << setting << ": " << text;
}

TEST(Settings, ThatTheHostLacksAreRefused)
{
    for (const char* setting : {"/split=4", "/swap_ab=1", "/stream_k=1", "/pdl=late", "/pdl=early"})
        expect_refused(host(), "host_blocked", setting);
    EXPECT_EQ(refusal_of(host(), "host_blocked/split=1/swap_ab=0/stream_k=0/pdl=off"), "");
    EXPECT_NE(refusal_of(host(), "/stream_k=1").find("/stream_k=1"), std::string::npos);
}

TEST(Settings, ThatAGpuBackendLacksAreRefused)
{
    NEEDS_CUDA_BUILD();
    const char* const sm120 = "sm120_64x64x64_s3";
    for (const char* setting : {"/split=2", "/swap_ab=1", "/stream_k=1", "/pdl=early"})
        expect_refused(rtx5090, sm120, setting);
    const char* const sm80 = "sm80_128x128x64_s3";
    for (const char* setting : {"/split=4", "/swap_ab=1", "/stream_k=1", "/pdl=late", "/pdl=early"})
        expect_refused(a100, sm80, setting);
    EXPECT_EQ(refusal_of(a100, std::string(sm80) + "/split=1/swap_ab=0/stream_k=0/pdl=off"), "");
    const char* const sm100 = "sm100_2cta_256x256_static";
    for (const char* setting : {"/stream_k=1", "/pdl=early"})
        expect_refused(b200, sm100, setting);
    EXPECT_EQ(refusal_of(h200, "sm90_splitk_64x64/split=9"),
              "kernel sm90_splitk_64x64 (HGEMM_KERNEL) serves this problem, but not with /split=9");
    EXPECT_EQ(refusal_of(h200, "sm90_pingpong_128x128/split=2/swap_ab=1"),
              "kernel sm90_pingpong_128x128 (HGEMM_KERNEL) serves this problem, but not with /split=2");
    EXPECT_EQ(refusal_of(h200, "sm90_splitk_64x64/stream_k=1/pdl=late"),
              "kernel sm90_splitk_64x64 (HGEMM_KERNEL) serves this problem, but not with /stream_k=1");
    for (const char* overlap : {"/pdl=late", "/pdl=off"}) {
        EXPECT_EQ(refusal_of(rtx5090, std::string(sm120) + "/split=1/swap_ab=0/stream_k=0" + overlap), "");
        EXPECT_EQ(refusal_of(b200, std::string(sm100) + "/split=1/swap_ab=1/stream_k=0" + overlap), "");
    }
}

TEST(Settings, OfTheHandleThatStandInTheWayAreNamed)
{
    NEEDS_CUDA_BUILD();
    const std::string split = "sm90_splitk_64x64/split=4";
    EXPECT_EQ(refusal_of(h200, split), "");
    EXPECT_EQ(refusal_of(h200, split, Mode::Default, 16),
              "kernel sm90_splitk_64x64 (HGEMM_KERNEL) serves this problem, but not on 16 SMs");
    EXPECT_EQ(refusal_of(h200, "sm90_splitk_64x64/split=1", Mode::BatchInvariant), "");
    EXPECT_EQ(
        refusal_of(h200, "sm90_direct_64x8/split=2", Mode::BatchInvariant),
        "kernel sm90_direct_64x8 (HGEMM_KERNEL) serves this problem, but not in batch-invariant mode");
}

}  // namespace
}  // namespace hg
