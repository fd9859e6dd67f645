// hgemm_tune() and hgemm_tune_grouped(): what they choose runs and is right, operands stay as they are, and
// what is wrong or does not run is left out.
#include "../grouped_rules.hpp"
#include "../trial.hpp"
#include "gpu.hpp"
#include "src/tools/support/environment.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

GemmCase layer(int64_t m)
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.m = m;
    g.n = 72;
    g.k = 136;
    g.aligned = true;
    g.data = Data::Normal;
    return g;
}

std::string value_of(const std::string& text, const std::string& name)
{
    const size_t found = (" " + text).find(" " + name + "=");
    if (found == std::string::npos)
        return "";
    const size_t begin = found + name.size() + 1;
    return text.substr(begin, text.find(' ', begin) - begin);
}

std::string kernel_of(const std::string& choice) { return choice.substr(0, choice.find('/')); }

class DeviceTune : public testing::Test {
protected:
    DeviceTune()
    {
        hgemm_tune_options_init(&options, sizeof options);
        hgemm_tune_report_init(&report, sizeof report);
        options.max_candidates = 4;
        options.max_rounds = 9;
    }
    void SetUp() override { NEEDS_GPU(); }
    void TearDown() override
    {
        hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr);
        std::remove(path.c_str());
        std::remove((path + ".lock").c_str());
    }

    static std::unique_ptr<Library> make_with(const std::string& file)
    {
        const Variable tuning("HGEMM_TUNING", file);
        return make();
    }
    std::unique_ptr<Library> make_logging()
    {
        hgemm_set_logger(
            HGEMM_LOG_PLAN,
            [](void* self, const char* line) { static_cast<DeviceTune*>(self)->on_line(line); }, this);
        return make_with("off");
    }
    // Tunes, and looks at memory, report and the next call.
    void tune_and_check(const GemmCase& g, Library& library)
    {
        SCOPED_TRACE(g.print());
        Trial trial(g, library.memory());
        trial.upload();
        const std::string before = library.explain(trial.args());
        ASSERT_EQ(hgemm_tune(library.handle(), &trial.args(), &options, &report), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        trial.download();
        EXPECT_EQ(trial.judge_memory(true).message, "");
        expect_complete();
        EXPECT_EQ(kernel_of(report.before), value_of(before, "kernel"));
        expect_now(library.explain(trial.args()));
        ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
        trial.download();
        EXPECT_EQ(trial.judge(library.arithmetic()).message, "");
    }
    void expect_complete() const
    {
        std::printf("%s %.2f us, before %.2f us, now %.2f us: gain %.3f, %d candidates, %d rounds\n",
                    report.now, report.built_in_us, report.before_us, report.now_us, report.gain,
                    report.candidates, report.rounds);
        EXPECT_EQ(report.complete, 1);
        EXPECT_GE(report.candidates, 1);
        EXPECT_LE(report.candidates, options.max_candidates + 2);
        EXPECT_EQ(report.wrong, 0) << report.wrong_kernels;
        EXPECT_EQ(report.failed, 0);
        EXPECT_GE(report.rounds, 9);
        EXPECT_GT(report.built_in_us, 0);
        EXPECT_GT(report.before_us, 0);
        EXPECT_GT(report.now_us, 0);
        const bool built_in = report.now == std::string(report.built_in);
        EXPECT_EQ(report.gain == 1, built_in) << report.gain;
        EXPECT_TRUE(report.gain > 1 || built_in) << report.gain;
    }
    void expect_now(const std::string& explained) const
    {
        const bool tuned = report.now != std::string(report.built_in);
        EXPECT_EQ(value_of(explained, "kernel"), kernel_of(report.now)) << explained;
        EXPECT_EQ(value_of(explained, "why") == "tuned-here", tuned) << explained;
    }
    std::string text() const
    {
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }

    hgemm_tune_options_t options;
    hgemm_tune_report_t report;
    std::string log;
    std::function<void(const std::string&)> on_line = [this](const std::string& line) {
        log += line + '\n';
    };
    const std::string path = testing::TempDir() + "hgemm_tune_" + std::to_string(getpid());
};

TEST_F(DeviceTune, serves_later_calls_and_leaves_operands_alone)
{
    const auto library = make_with("off");
    GemmCase epilogue = layer(24);
    epilogue.layout = HGEMM_COL_MAJOR;
    epilogue.type_c = epilogue.type_d = HGEMM_F32;
    epilogue.beta = -0.5f;
    epilogue.device_scalars = true;
    epilogue.bias = HGEMM_BIAS_M;
    epilogue.activation = HGEMM_ACTIVATION_SILU;
    epilogue.aux = true;
    epilogue.d.gap = 8;
    GemmCase other_c = layer(40);
    other_c.in_place = false;
    other_c.beta = 2;
    other_c.d.shift = 3;
    other_c.aligned = false;
    other_c.transa = HGEMM_TRANS;
    GemmCase batch = layer(16);
    batch.batch = Batch::Strided;
    batch.batch_count = 3;
    batch.beta = 1;
    batch.d.step = -9;
    GemmCase arrays = batch;
    arrays.batch = Batch::Arrays;
    GemmCase scaled = layer(16);
    scaled.alpha = 0;
    scaled.beta = 2;
    for (const GemmCase& g : {layer(40), epilogue, other_c, batch, arrays, scaled})
        tune_and_check(g, *library);
}

TEST_F(DeviceTune, keeps_batch_invariant_mode)
{
    const auto library = make_with("off");
    ASSERT_TRUE(library->set_batch_invariant(true));
    Trial trial(layer(40), library->memory());
    const std::string backend = value_of(library->explain(trial.args()), "backend");
    tune_and_check(layer(40), *library);
    EXPECT_EQ(kernel_of(report.now).substr(0, backend.size()), backend);
    ASSERT_TRUE(library->set_batch_invariant(false));
    EXPECT_NE(value_of(library->explain(trial.args()), "why"), "tuned-here");
}

TEST_F(DeviceTune, serves_groups)
{
    const auto library = make_with("off");
    GroupedCase g;
    g.rows = {30, 0, 64, 5};
    g.n = 72;
    g.k = 72;
    g.beta = -1;
    g.room = 4;
    for (const hgemm_grouping_t grouping : {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED}) {
        g.grouping = grouping;
        GroupedTrial trial(library->memory(), g);
        const hgemm_grouped_args_t args = trial.args();
        ASSERT_EQ(hgemm_tune_grouped(library->handle(), &args, &options, &report), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        EXPECT_EQ(report.complete, 1);
        EXPECT_EQ(report.wrong, 0) << report.wrong_kernels;
        EXPECT_EQ(report.failed, 0);
        ASSERT_EQ(trial.run(*library), HGEMM_STATUS_SUCCESS) << library->story();
        trial.expect_right();
    }
}

TEST_F(DeviceTune, writes_a_file_that_later_handles_read)
{
    options.write = 1;
    const auto first = make_with(path);
    std::vector<std::pair<int64_t, std::string>> chosen;
    for (const int64_t m : {8, 40, 72}) {
        tune_and_check(layer(m), *first);
        EXPECT_STREQ(report.path, path.c_str());
        chosen.emplace_back(m, report.now == std::string(report.built_in) ? "" : kernel_of(report.now));
    }
    const auto second = make_with(path);
    for (const auto& [m, kernel] : chosen) {
        Trial trial(layer(m), second->memory());
        const std::string text = second->explain(trial.args());
        EXPECT_EQ(value_of(text, "why") == "tuned-here", !kernel.empty()) << text;
        EXPECT_TRUE(kernel.empty() || value_of(text, "kernel") == kernel) << text;
    }
    // The file is a choice to begin with, and may be named.
    const std::string other = path + "_other";
    options.path = other.c_str();
    tune_and_check(layer(8), *second);
    EXPECT_EQ(kernel_of(report.before),
              chosen[0].second.empty() ? kernel_of(report.built_in) : chosen[0].second);
    EXPECT_STREQ(report.path, other.c_str());
    std::remove(other.c_str());
    std::remove((other + ".lock").c_str());
}

// The folder of the file goes while the product is measured.
TEST_F(DeviceTune, keeps_what_was_found_where_the_file_cannot_be_written)
{
    const std::string folder = path + "_folder", file = folder + "/file";
    options.write = 1;
    options.path = file.c_str();
    const auto library = make_logging();
    on_line = [&](const std::string& line) {
        if (line.find("candidates beside") != std::string::npos) {
            std::remove((file + ".lock").c_str());
            std::remove(folder.c_str());
        }
    };
    Trial trial(layer(40), library->memory());
    trial.upload();
    EXPECT_EQ(hgemm_tune(library->handle(), &trial.args(), &options, &report),
              HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_last_error(), "hgemm_tune: argument 3 (options->path) is '" + file +
                                      "', must name a file that can be written: cannot write " + file +
                                      ".lock: No such file or directory");
    EXPECT_EQ(report.path, nullptr);
    expect_complete();
    expect_now(library->explain(trial.args()));
}

// Another process may hold the lock for ever.
TEST_F(DeviceTune, waits_for_a_lock_no_longer_than_it_may_measure)
{
    options.write = 1;
    options.path = path.c_str();
    options.max_seconds = 0.5;
    const auto library = make_with("off");
    const int other = open((path + ".lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(other, 0);
    ASSERT_EQ(flock(other, LOCK_EX), 0);
    const Trial trial(layer(40), library->memory());
    EXPECT_EQ(hgemm_tune(library->handle(), &trial.args(), &options, &report),
              HGEMM_STATUS_INVALID_ARGUMENT);
    close(other);
    EXPECT_EQ(hgemm_last_error(), "hgemm_tune: argument 3 (options->path) is '" + path +
                                      "', must name a file that can be written: cannot write " + path +
                                      ".lock: another process holds it for more than 0.5 s");
}

TEST_F(DeviceTune, threads_share_a_file)
{
    options.write = 1;
    options.path = path.c_str();
    std::vector<std::thread> threads;
    const std::unique_ptr<Library> libraries[] = {make_with("off"), make_with("off")};
    for (const auto& library : libraries)
        threads.emplace_back([this, &library, &libraries] {
            Cuda::get();  // its context becomes the thread's
            Trial trial(layer(library == libraries[0] ? 8 : 16), library->memory());
            trial.upload();
            EXPECT_EQ(hgemm_tune(library->handle(), &trial.args(), &options, nullptr), HGEMM_STATUS_SUCCESS)
                << hgemm_last_error();
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(text().find("libhgemm-tuning 1\n"), 0u) << text();
}

TEST_F(DeviceTune, notices_wrong_results)
{
    // From the second candidate on A is another one.
    const auto library = make_logging();
    GemmCase g = layer(40);
    Trial trial(g, library->memory());
    trial.upload();
    on_line = [&](const std::string& line) {
        log += line + '\n';
        if (line.find("candidates beside") != std::string::npos)
            library->memory().fill(const_cast<void*>(trial.args().a), 0x3c, 64);
    };
    ASSERT_EQ(hgemm_tune(library->handle(), &trial.args(), &options, &report), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(report.wrong, report.candidates - 1) << report.wrong_kernels << '\n' << log;
    EXPECT_NE(log.find("its result is wrong"), std::string::npos) << log;
    EXPECT_STREQ(report.now, report.built_in);
    EXPECT_EQ(report.complete, 1);
    EXPECT_EQ(report.gain, 1);
}

TEST_F(DeviceTune, leaves_out_what_does_not_run)
{
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const auto set_faults =
        driver ? reinterpret_cast<int (*)(const char*)>(dlsym(driver, "emu_set_faults")) : nullptr;
    if (!set_faults)
        GTEST_SKIP() << "no driver that fails on request";
    const auto library = make_logging();
    Trial trial(layer(40), library->memory());
    trial.upload();
    EXPECT_EQ(hgemm_set_sm_count(library->handle(), -1), HGEMM_STATUS_INVALID_ARGUMENT);
    const std::string earlier = hgemm_last_error();
    EXPECT_EQ(set_faults("cuLaunchKernelEx:2=LAUNCH_OUT_OF_RESOURCES"), 0);
    ASSERT_EQ(hgemm_tune(library->handle(), &trial.args(), &options, &report), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(report.failed, 1) << log;
    EXPECT_EQ(report.wrong, 0) << log;
    EXPECT_EQ(report.complete, 1);
    EXPECT_NE(log.find("cuLaunchKernelEx answered 701"), std::string::npos) << log;
    EXPECT_EQ(hgemm_last_error(), earlier);
    // The library's own choice, and whatever tuning needs beside kernels.
    for (const char* const fault :
         {"cuLaunchKernelEx:1=LAUNCH_OUT_OF_RESOURCES", "cuMemAlloc:1=OUT_OF_MEMORY",
          "cuMemAlloc:2=OUT_OF_MEMORY", "cuEventCreate:2=OUT_OF_MEMORY", "cuMemcpyDtoHAsync:1=UNKNOWN"}) {
        EXPECT_EQ(set_faults(fault), 0);
        EXPECT_NE(hgemm_tune(library->handle(), &trial.args(), &options, &report), HGEMM_STATUS_SUCCESS)
            << fault;
    }
    set_faults("");
    ASSERT_EQ(library->run(trial.args()), HGEMM_STATUS_SUCCESS) << library->story();
    trial.download();
    EXPECT_EQ(trial.judge(library->arithmetic()).message, "");
}

TEST_F(DeviceTune, ends_in_time)
{
    options.max_seconds = 1e-6;
    const auto library = make_with("off");
    Trial trial(layer(40), library->memory());
    trial.upload();
    const std::string before = library->explain(trial.args());
    ASSERT_EQ(hgemm_tune(library->handle(), &trial.args(), &options, &report), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(report.complete, 0);
    EXPECT_STREQ(report.now, report.before);
    EXPECT_EQ(library->explain(trial.args()), before);
}

TEST_F(DeviceTune, is_refused_where_it_cannot_be)
{
    const auto library = make_with("off");
    Trial trial(layer(40), library->memory());
    trial.upload();
    const auto expect = [&](const Library& tuned, hgemm_status_t status, const std::string& why) {
        EXPECT_EQ(hgemm_tune(tuned.handle(), &trial.args(), &options, &report), status);
        EXPECT_NE(std::string(hgemm_last_error()).find(why), std::string::npos) << hgemm_last_error();
    };
    {
        const Stream stream;
        ASSERT_EQ(hgemm_set_stream(library->handle(), stream), HGEMM_STATUS_SUCCESS);
        CUgraphExec_st* const graph = Cuda::get()->capture(stream, [&] {
            expect(*library, HGEMM_STATUS_NOT_SUPPORTED, "the handle's stream is being captured");
            EXPECT_EQ(library->start(trial.args()), HGEMM_STATUS_SUCCESS) << library->story();
        });
        Cuda::get()->destroy(graph);
        ASSERT_EQ(hgemm_set_stream(library->handle(), nullptr), HGEMM_STATUS_SUCCESS);
    }
    ASSERT_EQ(hgemm_set_sm_count(library->handle(), 1), HGEMM_STATUS_SUCCESS);
    expect(*library, HGEMM_STATUS_NOT_SUPPORTED, "the handle may use 1 of ");
    ASSERT_EQ(hgemm_set_sm_count(library->handle(), 0), HGEMM_STATUS_SUCCESS);
    const Library forced(Cuda::get(), "", value_of(library->explain(trial.args()), "kernel"));
    expect(forced, HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_KERNEL chooses");
    options.write = 1;
    expect(*library, HGEMM_STATUS_INVALID_ARGUMENT, "argument 3 (options->path) is NULL, must name a file");
    options.path = "/proc/none/file";
    expect(*library, HGEMM_STATUS_INVALID_ARGUMENT,
           "argument 3 (options->path) is '/proc/none/file', must name a file that can be written: cannot "
           "make "
           "/proc/none");
    const auto of_backend = make(value_of(library->explain(trial.args()), "backend").c_str());
    expect(*of_backend, HGEMM_STATUS_NOT_SUPPORTED, "options->write must be 0");
}

}  // namespace
}  // namespace hg::test
