// A tuning file in the hands of a handle: what it chooses runs, is right, and keeps the promises of modes
// and of the workspace. All through the public functions: the log tells what a file must say.
#include "../trial.hpp"
#include "gpu.hpp"
#include "src/tools/support/environment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace hg::test {
namespace {

GemmCase f32_layer(int64_t m)
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.type_c = g.type_d = HGEMM_F32;
    g.m = m;
    g.n = 72;
    g.k = 264;
    g.aligned = true;
    g.data = Data::Normal;
    return g;
}

// What lies between two texts of a line.
std::string between(const std::string& text, const std::string& before, const std::string& after)
{
    const size_t found = text.find(before);
    if (found == text.npos)
        return "";
    const size_t begin = found + before.size();
    return text.substr(begin, text.find(after, begin) - begin);
}

std::string word(const std::string& text, const std::string& name)
{
    const std::string rest = between(" " + text, " " + name + "=", " ");
    return rest.substr(0, rest.find('\n'));
}

class DeviceTuning : public testing::Test {
protected:
    void SetUp() override { NEEDS_GPU(); }
    void TearDown() override
    {
        hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr);
        std::remove(path.c_str());
    }

    // A handle that has read a tuning file with these lines.
    std::unique_ptr<Library> make_with(const std::string& lines, const std::string& kernel = "")
    {
        std::ofstream(path) << "libhgemm-tuning 1\ndevice " << device() << "\nlibrary "
                            << hgemm_build_info() << '\n'
                            << lines << std::flush;
        return make_reading(kernel);
    }
    // A line for a GEMM. In batch-invariant mode it is another one.
    std::string line(const GemmCase& g, const std::string& kernel, bool invariant)
    {
        const auto library = make_reading();
        EXPECT_TRUE(library->set_batch_invariant(invariant));
        log.clear();
        Trial trial(g, library->memory());
        library->explain(trial.args());
        return word(log, "key") + ' ' + kernel + " us=1 built_in_us=2 spread=0 date=2026-01-31\n";
    }
    // Kernels that serve a GEMM, other than the library's own choice.
    std::vector<std::string> others(const GemmCase& g, bool invariant)
    {
        const Variable off("HGEMM_TUNING", "off");
        const auto own = make();
        own->set_batch_invariant(invariant);
        Trial trial(g, own->memory());
        const std::string choice = own->explain(trial.args());
        std::vector<std::string> names;
        for (const std::string& name : kernel_names()) {
            Library forced(Cuda::get(), "", name);
            if (!forced.created() || name == word(choice, "kernel") ||
                !name.starts_with(word(choice, "backend") + "_"))
                continue;
            forced.set_batch_invariant(invariant);
            if (word(forced.explain(trial.args()), "kernel") == name)
                names.push_back(name);
        }
        return names;
    }

    std::string log;
    const std::string path = testing::TempDir() + "hgemm_tuning_" + std::to_string(getpid());

private:
    std::unique_ptr<Library> make_reading(const std::string& kernel = "")
    {
        log.clear();
        hgemm_set_logger(
            HGEMM_LOG_PLAN,
            [](void* data, const char* text) { (*static_cast<std::string*>(data) += text) += '\n'; }, &log);
        const Variable file("HGEMM_TUNING", path);
        auto library = std::make_unique<Library>(Cuda::get(), "", kernel);
        EXPECT_TRUE(library->created()) << library->story();
        return library;
    }
    // The log says of which device a file had to be.
    std::string device()
    {
        std::ofstream(path) << "libhgemm-tuning 1\ndevice none\n" << std::flush;
        make_reading();
        return between(log, "it is of another device 'none', not '", "'");
    }
};

TEST_F(DeviceTuning, runs_what_the_file_chooses)
{
    const GemmCase g = f32_layer(40);
    const std::vector<std::string> kernels = others(g, false);
    ASSERT_FALSE(kernels.empty());
    const auto library = make_with(line(g, kernels[0], false));
    Trial trial(g, library->memory());
    trial.upload();
    const std::string text = library->explain(trial.args());
    EXPECT_EQ(word(text, "kernel"), kernels[0]) << text << log;
    EXPECT_EQ(word(text, "why"), "tuned-here") << text << log;
    size_t bytes = 1;
    EXPECT_EQ(hgemm_workspace_size(library->handle(), &trial.args(), &bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(word(text, "workspace"), std::to_string(bytes));
    for (int call = 0; call < 2; ++call)
        ASSERT_EQ(library->run(trial.args()), HGEMM_STATUS_SUCCESS) << library->story();
    trial.download();
    const Verdict verdict = trial.judge(library->arithmetic());
    EXPECT_TRUE(verdict.passed) << verdict.message;
    EXPECT_EQ(hgemm_set_sm_count(library->handle(), 1), HGEMM_STATUS_SUCCESS);
    EXPECT_NE(word(library->explain(trial.args()), "why"), "tuned-here");
    EXPECT_EQ(hgemm_set_sm_count(library->handle(), 0), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(word(library->explain(trial.args()), "why"), "tuned-here");
}

TEST_F(DeviceTuning, does_not_matter_where_a_kernel_is_forced)
{
    const GemmCase g = f32_layer(40);
    const std::vector<std::string> kernels = others(g, false);
    ASSERT_GE(kernels.size(), 2u);
    const auto library = make_with(line(g, kernels[0], false), kernels[1]);
    Trial trial(g, library->memory());
    const std::string text = library->explain(trial.args());
    EXPECT_EQ(word(text, "kernel"), kernels[1]) << text;
    EXPECT_EQ(word(text, "why"), "forced") << text;
    EXPECT_EQ(log.find("tuning file"), std::string::npos) << log;
}

// The rows that all products have are the same in each, although each is tuned to a kernel of its own.
TEST_F(DeviceTuning, keeps_bits_in_batch_invariant_mode)
{
    constexpr int64_t rows[] = {8, 16, 40, 72, 136};
    std::string lines;
    size_t next = 0;
    for (const int64_t m : rows) {
        const std::vector<std::string> kernels = others(f32_layer(m), true);
        ASSERT_FALSE(kernels.empty());
        lines += line(f32_layer(m), kernels[next % kernels.size()], true);
        next += std::max<size_t>(kernels.size() / std::size(rows), 1);
    }
    const auto library = make_with(lines);
    ASSERT_TRUE(library->set_batch_invariant(true));
    std::vector<double> first;
    for (const int64_t m : rows) {
        const GemmCase g = f32_layer(m);
        Trial trial(g, library->memory());
        trial.fill_a([&](int64_t, int64_t row, int64_t column) {
            return Trial::draw(Data::Normal, 5, static_cast<uint64_t>(row * g.k + column));
        });
        trial.upload();
        EXPECT_EQ(word(library->explain(trial.args()), "why"), "tuned-here") << lines << log;
        ASSERT_EQ(library->run(trial.args()), HGEMM_STATUS_SUCCESS) << library->story();
        trial.download();
        const std::vector<double> results = trial.results(rows[0]);
        if (first.empty())
            first = results;
        EXPECT_TRUE(results == first) << g.print();
    }
}

}  // namespace
}  // namespace hg::test
