// What is written where the program's locale has a decimal comma.
#include "devices.hpp"
#include "src/base/decimal.hpp"
#include "src/base/status.hpp"
#include "src/plan/calibration.hpp"
#include "src/tools/support/environment.hpp"
#include "src/tune/store.hpp"
#include "src/tuning/key.hpp"
#include "tuning_fixture.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace hg {
namespace {

std::string printed(double value)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.3f", value);
    return text;
}

// The program has such a locale, made by localedef, while the test runs.
class DecimalComma : public TuningFile {
protected:
    void SetUp() override
    {
        const std::string source = folder / "source", locale = folder / "comma";
        std::ofstream(source) << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
                                 "END LC_NUMERIC\n";
        // It warns of the categories that are not there.
        const std::string command =
            "localedef --no-archive -c -i '" + source + "' '" + locale + "' >/dev/null 2>&1";
        if (std::system(command.c_str()) < 0)
            FAIL() << command;
        const test::Variable places("LOCPATH", folder);
        ASSERT_NE(std::setlocale(LC_NUMERIC, "comma"), nullptr) << command;
        ASSERT_EQ(printed(1.5), "1,500");
    }
    void TearDown() override { std::setlocale(LC_NUMERIC, "C"); }
};

TEST_F(DecimalComma, NumbersHavePoints)
{
    EXPECT_STREQ(fixed(1234567.1239, 3).text(), "1234567.124");
    EXPECT_EQ(std::string(fixed(-1.7976931348623157e308, 8).text()).substr(310), ".00000000")
        << "the longest";
    EXPECT_STREQ(general(0.5).text(), "0.5");
    EXPECT_STREQ(general(1e-5).text(), "1e-05");
    EXPECT_STREQ(general(123456789).text(), "1.23457e+08");
    EXPECT_STREQ(scientific(0.000012345, 2).text(), "1.23e-05");
}

TEST_F(DecimalComma, TuningLinesAreRead)
{
    const TuningOrigin origin(h200, h200.sm_count);
    const std::string key = tuning_key(layer, Mode::Default);
    Factors factors;
    factors.cycles = 1.25;
    const std::string text =
        merge("", origin,
              {{key, entry_line(key, splitk, 12.3, 13.456, 0.01)},
               {calibration_key("sm90"), calibration_line("sm90", factors, 0, "2026-01-31")}});
    const TuningText found = parse_tuning(text, origin);
    EXPECT_EQ(found.refusal, "");
    EXPECT_TRUE(found.bad_lines.empty()) << text;
    ASSERT_EQ(found.entries.size(), 1u) << text;
    EXPECT_TRUE(found.entries[0].measured.starts_with("us=12.300 built_in_us=13.456 spread=0.0100 date="))
        << found.entries[0].measured;
    ASSERT_EQ(found.calibration.size(), 1u) << text;
    EXPECT_EQ(found.calibration[0].factors.cycles, 1.25);
}

TEST_F(DecimalComma, ProblemsAndPlansHavePoints)
{
    char text[512];
    Problem problem = layer;
    problem.alpha = 0.5f;
    problem.beta = -1.25f;
    problem.print(text, sizeof text);
    EXPECT_TRUE(contains(text, " alpha=0.5 beta=-1.25")) << text;
    NEEDS_CUDA_BUILD();
    open();
    const Plan decided = plan(layer);
    decided.print(text, sizeof text);
    EXPECT_TRUE(contains(text, " waves=")) << text;
    EXPECT_TRUE(contains(text, " predicted_us=")) << text;
    EXPECT_FALSE(contains(text, ",")) << text;
}

TEST_F(DecimalComma, ErrorsHavePoints)
{
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.lda = args.ldb = args.ldd = 1;
    hgemm_tune_options_t options;
    hgemm_tune_options_init(&options, sizeof options);
    options.max_seconds = -1.5;
    EXPECT_EQ(hgemm_tune(handle, &args, &options, nullptr), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(hgemm_last_error(), "is -1.5, must be at least 0")) << hgemm_last_error();
    hgemm_destroy(handle);
}

}  // namespace
}  // namespace hg
