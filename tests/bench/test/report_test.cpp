// CSV there and back, the report, JSON, and pictures that a viewer can open.
#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/csv.hpp"
#include "src/tools/bench/files.hpp"
#include "src/tools/bench/picture.hpp"
#include "src/tools/bench/report.hpp"
#include "src/tools/bench/svg.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <stdexcept>

namespace hg::bench {
namespace {

Measurement measured(const Product& product, double ours, double ratio_default, double ratio_best)
{
    Measurement m;
    m.product = product;
    m.kernel = "sm90_<some>&kernel";
    m.ours_us = ours;
    m.ratio_default = ratio_default;
    m.ratio_best = ratio_best;
    m.default_us = ours * ratio_default;
    m.best_us = ours * ratio_best;
    m.error = 0.5;
    m.sm_mhz = 1980;
    m.watts = 400.5;
    return m;
}

Run sample_run()
{
    Run run;
    run.machine = {{"device", "NVIDIA <H200>"}, {"driver", "580: 159"}, {"cublas", ""}};
    run.rows = {measured({1, 4096, 4096, HGEMM_BF16, "tn", 0, 0, "llm"}, 12, 1.1, 1.05),
                measured({1024, 2048, 64, HGEMM_F16, "nt", 0, 0, "mirror"}, 5, 0.9, 0.8),
                measured({4096, 4096, 4096, HGEMM_F16, "tn", 0, 0, "grid"}, 170, 1.02, 1.01),
                measured({4095, 4095, 4095, HGEMM_F16, "tn", 1, 3, "odd"}, 300, 2, unknown)};
    run.rows[0].aa_spread = 0.004;
    run.rows[0].hot_us = 9.5;
    run.rows[0].invariant_kernel = "sm90_<another>";
    run.rows[0].invariant_us = 15;
    run.rows[0].invariant_cost = 1.25;
    run.rows[0].invariant_error = 0.25;
    return run;
}

class TemporaryFile {
public:
    TemporaryFile() : path_(testing::TempDir() + "hgemm_bench_test_" + std::to_string(getpid()) + ".csv") {}
    ~TemporaryFile() { std::remove(path_.c_str()); }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

void expect_same(const Run& x, const Run& y)
{
    EXPECT_EQ(x.machine, y.machine);
    ASSERT_EQ(x.rows.size(), y.rows.size());
    const auto same = [](double a, double b) { return known(a) ? std::fabs(a - b) < 1e-4 : !known(b); };
    for (size_t i = 0; i < x.rows.size(); ++i) {
        const Measurement &a = x.rows[i], &b = y.rows[i];
        EXPECT_EQ(a.product, b.product);
        EXPECT_EQ(a.kernel, b.kernel);
        EXPECT_EQ(a.invariant_kernel, b.invariant_kernel);
        EXPECT_EQ(a.best_rank, b.best_rank);
        EXPECT_EQ(a.sm_mhz, b.sm_mhz);
        EXPECT_TRUE(same(a.ours_us, b.ours_us) && same(a.default_us, b.default_us) &&
                    same(a.best_us, b.best_us) && same(a.ratio_default, b.ratio_default) &&
                    same(a.ratio_best, b.ratio_best) && same(a.aa_spread, b.aa_spread) &&
                    same(a.hot_us, b.hot_us) && same(a.host_us, b.host_us) && same(a.watts, b.watts) &&
                    same(a.invariant_us, b.invariant_us) && same(a.invariant_cost, b.invariant_cost) &&
                    same(a.invariant_error, b.invariant_error))
            << a.product.shape();
    }
}

TEST(Csv, comes_back_as_it_was_written)
{
    const TemporaryFile file;
    const auto run = sample_run();
    {
        Csv csv(file.path(), run.machine, {run.rows[0]});
        for (size_t i = 1; i < run.rows.size(); ++i)
            csv.write(run.rows[i]);
    }
    expect_same(run, read_csv(file.path()));
}

TEST(Csv, an_unfinished_line_is_left_out_and_a_failed_result_is_kept)
{
    const TemporaryFile file;
    auto run = sample_run();
    run.rows[1].error = std::numeric_limits<double>::infinity();
    {
        Csv csv(file.path(), run.machine, run.rows);
    }
    std::ofstream(file.path(), std::ios::app) << "64,64,64,tn,f16,3.1";
    const auto back = read_csv(file.path());
    expect_same(run, back);
    EXPECT_TRUE(std::isinf(back.rows[1].error));
}

TEST(Csv, columns_are_found_by_name)
{
    const TemporaryFile file;
    std::ofstream(file.path()) << "surprise,k,ours,n,m,dtype,layout\n1,2,3.5,4,5,bf16,tn\n";
    const auto run = read_csv(file.path());
    ASSERT_EQ(run.rows.size(), 1u);
    EXPECT_EQ(run.rows[0].product, (Product{5, 4, 2, HGEMM_BF16, "tn"}));
    EXPECT_EQ(run.rows[0].ours_us, 3.5);
    EXPECT_FALSE(known(run.rows[0].ratio_best));
}

TEST(Csv, outputs_come_back_and_are_plain_without_their_column)
{
    const TemporaryFile file;
    auto run = sample_run();
    run.rows[1].product.output = Output("f32+beta");
    run.rows[2].product.output = Output("bias+gelu+aux");
    {
        Csv csv(file.path(), run.machine, run.rows);
    }
    expect_same(run, read_csv(file.path()));
    std::ofstream(file.path()) << "m,n,k,layout,dtype,ours\n8,8,8,tn,f16,3\n";
    EXPECT_TRUE(read_csv(file.path()).rows.at(0).product.output.plain());
}

TEST(Report, has_regions_goals_and_the_worst)
{
    const std::string text = summary(sample_run());
    for (const char* wanted :
         {"gemv", "large", "odd", "all", "llm m 1-64", "1.100/1.07 ok", "1.050/1.04 ok", "0.900/1.02 --",
          "2.000/1.70 ok", "grid large", "Worst against cublasGemmEx", "0.800  1024x2048x64", "0.0040"})
        EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
    EXPECT_EQ(text.find("thin-K"), std::string::npos) << text;
}

TEST(Csv, has_the_baseline_and_refuses_to_go_on_with_another)
{
    const TemporaryFile file;
    auto run = sample_run();
    EXPECT_EQ(baseline_of(run.machine), "cublas");
    run.machine["baseline"] = "mma-sync";
    run.rows[0].best_algorithm = "id21/tile=128x64/stages=64x6/split=4/swizzle=0";
    run.rows[0].best_tried = "21:624 23:0 24:absent";
    {
        Csv csv(file.path(), run.machine, run.rows);
    }
    const auto back = read_csv(file.path());
    expect_same(run, back);
    EXPECT_EQ(baseline_of(back.machine), "mma-sync");
    EXPECT_EQ(back.rows[0].best_algorithm, run.rows[0].best_algorithm);
    EXPECT_EQ(back.rows[0].best_tried, run.rows[0].best_tried);
    EXPECT_NO_THROW(require_same_baseline(file.path(), back.machine, "mma-sync"));
    EXPECT_THROW(require_same_baseline(file.path(), back.machine, "cublas"), std::runtime_error);
    EXPECT_THROW(require_same_baseline(file.path(), {}, "mma-sync"), std::runtime_error);
}

TEST(Report, says_what_the_baseline_is)
{
    auto run = sample_run();
    const std::string before = summary(run);
    EXPECT_NE(before.find("vs best of cuBLASLt"), std::string::npos) << before;
    EXPECT_EQ(before.find("mma"), std::string::npos) << before;
    EXPECT_NE(ratio_map(run).find("Time of the best of cuBLASLt / time of libhgemm"), std::string::npos);
    EXPECT_EQ(heading(run.machine).find("mma"), std::string::npos);
    run.machine["baseline"] = "mma-sync";
    for (size_t i = 0; i < 3; ++i) {
        run.rows[i].algorithms = 600 + static_cast<int>(i);
        run.rows[i].best_algorithm =
            std::string(i == 0 ? "id23" : "id21") + "/tile=128x64/stages=64x6/split=4/swizzle=0";
        run.rows[i].best_tried = "21:600 23:2";
    }
    const std::string text = summary(run);
    for (const char* wanted : {"vs mma.sync of cuBLASLt", "1.100/1.07 ok               -",
                               "algorithm ids 21, 23 and 24 of cuBLASLt (cutlass_80_*, cutlass_75_*):\n600 "
                               "to 602 configurations "
                               "were tried for a product. Fastest 2 times: id21. Fastest 1 time: "
                               "id23.\nNo mma.sync baseline for "
                               "1 of 4 products.",
                               "Worst against the mma.sync of cuBLASLt"})
        EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
    EXPECT_EQ(text.find("best of cuBLASLt"), std::string::npos) << text;
    EXPECT_NE(ratio_map(run).find("Time of the mma.sync of cuBLASLt / time of libhgemm"),
              std::string::npos);
    EXPECT_NE(heading(run.machine).find("algorithm ids 21, 23, 24"), std::string::npos);
    EXPECT_NE(line(run.rows[0]).find("mma.sync id23/tile=128x64/stages=64x6/split=4/swizzle=0 of 21:600"),
              std::string::npos);
    run.machine["baseline"] = "somebody's";
    EXPECT_NE(summary(run).find("vs somebody's"), std::string::npos);
}

TEST(Report, keeps_outputs_apart)
{
    auto rows = sample_run().rows;
    const std::string before = summary({{}, rows});
    Product product{64, 64, 64, HGEMM_F16, "tn", 0, 0, "llm", Output("bias+gelu")};
    rows.push_back(measured(product, 3, unknown, 0.5));
    product.output = Output("beta");
    rows.push_back(measured(product, 3, 0.25, 0.8));
    product.m = 128;
    rows.push_back(measured(product, 4, 1, 1.25));
    const std::string text = summary({{}, rows});
    for (const char* wanted : {"bias+gelu               1        -      -      -      -     - %    0.500",
                               "beta                    2    0.500  0.287  0.625  0.962    50 %    1.000",
                               "Worst outputs against cublasGemmEx:\n  0.250  64x64x64 beta",
                               "Worst outputs against the best of cuBLASLt:\n  0.500  64x64x64 bias+gelu"})
        EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
    for (const char* same : {"\nall ", "\nllm m 1-64 ", "\nWorst against cublasGemmEx:"}) {
        const auto line_of = [&](const std::string& all) {
            const size_t begin = all.find(same);
            return all.substr(begin, all.find('\n', begin + 1) - begin);
        };
        EXPECT_EQ(line_of(text), line_of(before));
    }
    EXPECT_EQ(text.find("\ntiny"), std::string::npos) << text;
    EXPECT_NE(line(rows[4]).find(" 64x64x64 bias+gelu sm90_"), std::string::npos);
}

TEST(Report, tells_what_batch_invariant_mode_costs)
{
    auto rows = sample_run().rows;
    EXPECT_NE(line(rows[0]).find("  batch-invariant 15.00 x1.250 sm90_<another>"), std::string::npos);
    EXPECT_EQ(line(rows[1]).find("batch-invariant"), std::string::npos);
    const std::string heading = "\nBatch-invariant mode:";
    std::string text = summary({{}, rows});
    EXPECT_NE(text.find(heading), std::string::npos);
    EXPECT_NE(text.find("all                     1    1.250  1.250  1.250"), std::string::npos) << text;
    const std::string ratio = fmt::format("1.250    {:.3f}", rows[0].ratio_default / 1.25);
    EXPECT_NE(text.find(ratio), std::string::npos) << text;
    rows[2].invariant_cost = 1;
    rows[2].invariant_us = 170;
    text = summary({{}, rows});
    EXPECT_NE(text.find("all                     2    1.118  1.238  1.250"), std::string::npos) << text;
    rows.erase(rows.begin());
    rows[1].invariant_cost = unknown;
    EXPECT_EQ(summary({{}, rows}).find(heading), std::string::npos);
}

TEST(Report, without_baselines_says_so)
{
    EXPECT_NE(
        summary({{}, {measured({8, 8, 8, HGEMM_F16, "tn"}, 3, unknown, unknown)}}).find("No baseline"),
        std::string::npos);
    EXPECT_NE(summary({}).find("No baseline"), std::string::npos);
}

TEST(Report, lines_mark_what_is_wrong)
{
    Measurement m = sample_run().rows[0];
    EXPECT_EQ(line(m).find("WRONG"), std::string::npos);
    m.error = 1.5;
    EXPECT_NE(line(m).find("  WRONG"), std::string::npos);
    m.error = 0.5;
    m.invariant_error = 1.5;
    EXPECT_NE(line(m).find("  WRONG"), std::string::npos);
    m.invariant_error = 0.5;
    m.best_error = 2;
    EXPECT_NE(line(m).find("BASELINE WRONG"), std::string::npos);
}

TEST(Json, holds_every_row)
{
    auto run = sample_run();
    run.rows[2].error = std::numeric_limits<double>::infinity();
    const auto document = nlohmann::json::parse(json(run));
    EXPECT_EQ(document["machine"]["driver"], "580: 159");
    ASSERT_EQ(document["rows"].size(), 4u);
    EXPECT_EQ(document["rows"][0]["n"], 4096);
    EXPECT_EQ(document["rows"][0]["output"], "plain");
    EXPECT_NEAR(document["rows"][0]["ratio_best"].get<double>(), 1.05, 1e-12);
    EXPECT_TRUE(document["rows"][3]["ratio_best"].is_null());
    EXPECT_EQ(document["rows"][2]["error"], "infinite");
}

// Tags open and close in order, and no bare < or & stands in text.
testing::AssertionResult is_well_formed(const std::string& xml)
{
    std::vector<std::string> open;
    for (size_t at = xml.find_first_of("<&"); at != std::string::npos;
         at = xml.find_first_of("<&", at + 1)) {
        const size_t end = xml.find(xml[at] == '<' ? '>' : ';', at);
        if (end == std::string::npos)
            return testing::AssertionFailure() << "unfinished at " << at;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        if (xml[at] == '&') {
            if (tag != "lt" && tag != "gt" && tag != "amp" && tag != "quot")
                return testing::AssertionFailure() << "entity " << tag;
        } else if (tag[0] == '/') {
            if (open.empty() || open.back() != tag.substr(1))
                return testing::AssertionFailure() << "closes " << tag;
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(tag.substr(0, tag.find(' ')));
        }
    }
    return open.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << "open " << open[0];
}

size_t count(const std::string& text, const std::string& what)
{
    size_t found = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
    return found;
}

TEST(Pictures, are_well_formed)
{
    const auto run = sample_run();
    const std::string plot = roofline(run, limits_of(run.machine)), map = ratio_map(run);
    EXPECT_TRUE(is_well_formed(plot)) << plot;
    EXPECT_TRUE(is_well_formed(map)) << map;
    EXPECT_EQ(count(plot, " us, "), run.rows.size());
    EXPECT_EQ(count(map, ", 1 product</title>"), 4u + 3u);  // one cell was not measured against the best
    EXPECT_EQ(plot.find("nan"), std::string::npos);
    EXPECT_EQ(map.find("nan"), std::string::npos);
}

TEST(Pictures, have_the_limits_of_their_device)
{
    auto run = sample_run();
    EXPECT_NE(roofline(run, limits_of(run.machine)).find("4 products; limits not known"),
              std::string::npos);
    run.machine["device"] = "NVIDIA H100 80GB HBM3";
    const std::string plot = roofline(run, limits_of(run.machine));
    EXPECT_TRUE(is_well_formed(plot)) << plot;
    EXPECT_NE(plot.find("4 products; limits 1071 TFLOP/s, 3.35 TB/s"), std::string::npos) << plot;
}

// The operands are three times as large as the L2 cache, of which some lines are left all the same.
TEST(Report, no_result_beats_its_floor)
{
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(RESULTS)) {
        const std::string name = file.path().filename();
        if (!name.ends_with(".csv") || !(name.starts_with("h100_") || name.starts_with("h200_")))
            continue;
        bench::Run run;
        try {
            run = read_csv(file.path());
        } catch (const std::runtime_error&) {
            continue;  // of another kind
        }
        ++files;
        for (const Measurement& m : run.rows)
            for (const double us : {m.ours_us, m.default_us, m.best_us})
                EXPECT_FALSE(us <= 0.99 * m.floor_us)
                    << name << " " << m.product.shape();  // or one is unknown
    }
    EXPECT_GT(files, 20);
}

TEST(Report, a_file_that_is_none_is_refused)
{
    const auto reason = [](const std::string& text) {
        const TemporaryFile file;
        std::ofstream(file.path()) << text;
        try {
            read_csv(file.path());
        } catch (const std::runtime_error& error) {
            return std::string(error.what()).substr(file.path().size());
        }
        return std::string();
    };
    EXPECT_EQ(reason(""), ": no column m");
    EXPECT_EQ(reason("root:x:0:0\n"), ": no column m");
    EXPECT_EQ(reason("m,n,k\n1,2,3\n"), ": no column ours");
    EXPECT_EQ(reason("m,n,k,ours\n1,2,3,4.5\n1,x,3,4.5\n"), ":3: column n has 'x'");
    EXPECT_EQ(reason("m,n,k,ours\n1,2,3,fast\n"), ":2: column ours has 'fast'");
    EXPECT_EQ(reason("m,n,k,ours\n1,2,3,4.5\n"), "");
}

TEST(Report, columns_of_the_table_stand_apart)
{
    const std::string text = heading({{"device", "NVIDIA H200"}});
    EXPECT_NE(text.find(" best  /default "), std::string::npos) << text;
    EXPECT_NE(text.find("rates allow (1071 TFLOP/s, 4.92 TB/s)"), std::string::npos) << text;
    EXPECT_NE(heading({}).find("rates allow, which are not known"), std::string::npos);
}

TEST(Pictures, of_nothing_are_well_formed_too)
{
    EXPECT_TRUE(is_well_formed(roofline({}, {})));
    EXPECT_TRUE(is_well_formed(ratio_map({})));
    EXPECT_EQ(escaped("a<b&\"c\">"), "a&lt;b&amp;&quot;c&quot;&gt;");
}

}  // namespace
}  // namespace hg::bench
