// hgemm_tune() on the host, where there is nothing to tune: its arguments, its structs, its report.
#include "../library.hpp"
#include "message.hpp"
#include "src/tools/support/environment.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hg::test {
namespace {

class TuneArguments : public testing::Test {
protected:
    TuneArguments()
    {
        hgemm_args_init(&args, sizeof args);
        args.m = args.n = args.k = args.lda = args.ldb = args.ldd = 16;
        args.a = &matrix[0];
        args.b = &matrix[256];
        args.d = &matrix[512];
        hgemm_grouped_args_init(&grouped, sizeof grouped);
        grouped.group_count = 1;
        grouped.m = grouped.n = grouped.k = grouped.lda = grouped.ldb = grouped.ldd = 16;
        grouped.a = &matrix[0];
        grouped.b = &matrix[256];
        grouped.d = &matrix[512];
        grouped.offsets = offsets;
        hgemm_tune_options_init(&options, sizeof options);
        hgemm_tune_report_init(&report, sizeof report);
    }
    hgemm_status_t tune() { return hgemm_tune(library.handle(), &args, &options, &report); }
    hgemm_status_t tune_grouped()
    {
        return hgemm_tune_grouped(library.handle(), &grouped, &options, &report);
    }
    void refuses_options(const std::string& text)
    {
        expect_invalid(tune(), 3, "hgemm_tune: argument 3 (options->" + text);
        expect_invalid(tune_grouped(), 3, "hgemm_tune_grouped: argument 3 (options->" + text);
        hgemm_tune_options_init(&options, sizeof options);
    }

    Library library{nullptr};
    std::vector<uint16_t> matrix = std::vector<uint16_t>(3 * 256, 0x3c00);
    const int64_t offsets[2] = {0, 16};
    hgemm_args_t args;
    hgemm_grouped_args_t grouped;
    hgemm_tune_options_t options;
    hgemm_tune_report_t report;
};

TEST_F(TuneArguments, on_the_host_there_is_nothing_to_tune)
{
    const std::vector<uint16_t> before = matrix;
    std::memset(&report, 0xff, sizeof report);
    report.size = sizeof report;
    ASSERT_EQ(tune(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(report.size, sizeof report);
    EXPECT_EQ(report.candidates, 1);
    EXPECT_EQ(report.wrong, 0);
    EXPECT_EQ(report.failed, 0);
    EXPECT_EQ(report.rounds, 0);
    EXPECT_EQ(report.complete, 1);
    EXPECT_EQ(report.built_in_us, 0);
    EXPECT_EQ(report.gain, 1);
    EXPECT_EQ(report.spread, 0);
    EXPECT_STREQ(report.built_in, "");
    EXPECT_STREQ(report.before, "");
    EXPECT_STREQ(report.now, "");
    EXPECT_STREQ(report.wrong_kernels, "");
    EXPECT_EQ(report.path, nullptr);
    EXPECT_EQ(tune_grouped(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(report.candidates, 1);
    EXPECT_EQ(hgemm_tune(library.handle(), &args, nullptr, nullptr), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_tune_grouped(library.handle(), &grouped, nullptr, nullptr), HGEMM_STATUS_SUCCESS);
    args.m = 0;
    EXPECT_EQ(tune(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(report.candidates, 0);
    grouped.group_count = 0;
    EXPECT_EQ(tune_grouped(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(report.candidates, 0);
    EXPECT_EQ(matrix, before);
}

TEST_F(TuneArguments, writes_nothing_on_the_host)
{
    const std::string path = testing::TempDir() + "hgemm_no_tuning_" + std::to_string(getpid());
    options.write = 1;
    options.path = path.c_str();
    ASSERT_EQ(tune(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(report.path, nullptr);
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(TuneArguments, that_are_wrong_are_named)
{
    EXPECT_EQ(hgemm_tune(nullptr, &args, &options, &report), HGEMM_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(hgemm_tune_grouped(nullptr, &grouped, &options, &report), HGEMM_STATUS_NOT_INITIALIZED);
    expect_invalid(hgemm_tune(library.handle(), nullptr, &options, &report), 2, "(args) is NULL");
    expect_invalid(hgemm_tune_grouped(library.handle(), nullptr, &options, &report), 2, "(args) is NULL");
    args.lda = 15;
    expect_invalid(tune(), 2, "hgemm_tune: argument 2 (args->lda) is 15, must be at least m = 16");
    grouped.ldd = 15;
    expect_invalid(tune_grouped(), 2, "(args->ldd) is 15, must be at least n = 16");
    grouped.ldd = 16;
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.problems = &args;
    expect_invalid(tune_grouped(), 2, "(args->grouping) is 3 (host), must be 1 (contiguous) or 2 (masked)");
}

TEST_F(TuneArguments, options_that_are_wrong_are_named)
{
    options.max_candidates = -1;
    refuses_options("max_candidates) is -1, must be 0 or from 1 to 1000");
    options.max_candidates = 1001;
    refuses_options("max_candidates) is 1001, must be 0 or from 1 to 1000");
    options.max_rounds = 8;
    refuses_options("max_rounds) is 8, must be 0 or from 9 to 1000");
    options.max_seconds = -1;
    refuses_options("max_seconds) is -1, must be at least 0");
    options.max_seconds = NAN;
    refuses_options("max_seconds) is nan, must be at least 0");
    options.write = 2;
    refuses_options("write) is 2, must be 0 or 1");
    options.path = "file\n";
    refuses_options("path) is 'file\\x0a', must be NULL while options->write is 0");
    options.write = 1;
    options.path = "";
    refuses_options("path) is '', must name a file or be NULL");
    options.size = 8;
    refuses_options("size) is 8, must be a multiple of 8 from 40 to 1024: use hgemm_tune_options_init");
}

TEST_F(TuneArguments, structs_are_as_long_as_they_say)
{
    report.size = 1032;
    expect_invalid(tune(), 4,
                   "argument 4 (report->size) is 1032, must be a multiple of 8 from " +
                       std::to_string(sizeof report) + " to 1024: use hgemm_tune_report_init");
    alignas(8) char bytes[sizeof report + 8] = {};
    expect_invalid(
        hgemm_tune(library.handle(), &args, &options, reinterpret_cast<hgemm_tune_report_t*>(bytes + 4)), 4,
        "(report) is 0x");
    expect_invalid(hgemm_tune(library.handle(), &args,
                              reinterpret_cast<const hgemm_tune_options_t*>(bytes + 4), nullptr),
                   3, "(options) is 0x");
    struct Newer {
        hgemm_tune_report_t report;
        uint64_t added;
    } newer;
    hgemm_tune_report_init(&newer.report, sizeof newer);
    EXPECT_EQ(hgemm_tune(library.handle(), &args, nullptr, &newer.report), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(newer.report.size, sizeof newer);
    EXPECT_EQ(newer.report.candidates, 1);
    // Filled as far as the caller has it.
    hgemm_tune_options_init(nullptr, sizeof options);
    hgemm_tune_report_init(nullptr, sizeof report);
    unsigned char raw[64];
    std::memset(raw, 0xff, sizeof raw);
    hgemm_tune_options_init(reinterpret_cast<hgemm_tune_options_t*>(raw), 24);
    EXPECT_EQ(raw[0], 24);
    EXPECT_EQ(raw[23], 0);
    EXPECT_EQ(raw[24], 0xff);
}

}  // namespace
}  // namespace hg::test
