// The log: where it goes, what may be its file, and what text comes there.
#include "../library.hpp"
#include "child.hpp"
#include "message.hpp"
#include "src/tools/support/environment.hpp"

#include "hgemm.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

std::string read(const std::string& path)
{
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

class Log : public testing::Test {
protected:
    Log()
    {
        std::string name = testing::TempDir() + "hgemm_log_XXXXXX";
        folder = mkdtemp(name.data());
        path = folder + "/log";
    }
    ~Log() override
    {
        std::remove(path.c_str());
        std::remove((folder + "/other").c_str());
        rmdir(folder.c_str());
    }

    hgemm_handle_t create(const char* level)
    {
        const Variable level_variable("HGEMM_LOG", level), file_variable("HGEMM_LOG_FILE", path);
        hgemm_handle_t handle = nullptr;
        EXPECT_EQ(hgemm_create_sized(&handle, HGEMM_DEVICE_HOST, size_t{1} << 20), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        return handle;
    }
    // What a handle that fails once writes to standard error.
    std::string on_standard_error()
    {
        testing::internal::CaptureStderr();
        const hgemm_handle_t handle = create("error");
        EXPECT_EQ(hgemm_set_sm_count(handle, -1), HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        return testing::internal::GetCapturedStderr();
    }
    void refuses_the_file(const std::string& reason)
    {
        const std::string text = on_standard_error();
        EXPECT_EQ(text.find("hgemm: '" + path + "' (HGEMM_LOG_FILE) cannot be written to: " + reason +
                            "; the log goes on here\n"),
                  0u)
            << text;
        EXPECT_TRUE(contains(text, "\nhgemm: error HGEMM_STATUS_INVALID_ARGUMENT: "))
            << "the log itself: " << text;
    }

    std::string folder, path;
};

TEST_F(Log, goes_to_its_file)
{
    const hgemm_handle_t logging = create("trace");
    std::vector<uint16_t> matrix(3 * 256);
    hgemm_half_t* data = matrix.data();
    EXPECT_EQ(hgemm_tn(logging, 16, 16, 16, 1, data, 16, data + 256, 16, 0, data + 512, 16),
              HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_tn(logging, -5, 16, 16, 1, data, 16, data + 256, 16, 0, data + 512, 16),
              HGEMM_STATUS_INVALID_ARGUMENT);
    hgemm_half_t* const x = data + 256;
    hgemm_half_t* const y = data + 512;
    EXPECT_EQ(hgemv_n(logging, 3, 5, 1, data, 16, x, 2, 0, y, 1), HGEMM_STATUS_SUCCESS);
    for (int call = 0; call < 2; ++call)
        EXPECT_EQ(bgemv_t(logging, 3, 5, 1, data, 16, x, -1, 0, y, 1), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_strided_batched(logging, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 4, 8, 16, 1,
                                    data, 16, 64, x, 8, 0, 0, y, 8, 32, 3),
              HGEMM_STATUS_SUCCESS);
    hgemm_args_t problems[2];
    for (hgemm_args_t& args : problems) {
        hgemm_args_init(&args, sizeof args);
        args.m = args.n = args.lda = args.ldd = 16;
        args.k = args.ldb = 24;
        args.a = args.b = data;
        args.d = data + 512;
    }
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    grouped.grouping = HGEMM_GROUPED_HOST;
    grouped.group_count = 2;
    grouped.problems = problems;
    EXPECT_EQ(hgemm_grouped_ex(logging, &grouped), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_destroy(logging), HGEMM_STATUS_SUCCESS);
    std::stringstream text(read(path));
    EXPECT_TRUE(contains(text.str(), "plan ")) << text.str();
    EXPECT_TRUE(contains(text.str(), "hgemm-bench ")) << text.str();
    EXPECT_TRUE(contains(text.str(), "is -5")) << text.str();
    const auto lines = [&](const std::string& part) {
        int count = 0;
        for (std::string line; std::getline(text, line);)
            count += contains(line + '\n', part);
        text.clear();
        text.seekg(0);
        return count;
    };
    const std::string trace = "trace hgemm-bench compare --shapes ";
    EXPECT_EQ(lines(trace + "16x16x16 --dtype f16 --layout tn\n"), 1) << text.str();
    EXPECT_EQ(lines(trace + "1x3x5 --dtype f16 --layout tt --output strided\n"), 1) << text.str();
    EXPECT_EQ(lines(trace + "1x5x3 --dtype bf16 --layout tn --output strided\n"), 2) << text.str();
    EXPECT_EQ(lines(trace + "4x8x16x3 --dtype f16 --layout tt --output shared\n"), 1) << text.str();
    EXPECT_EQ(lines(" k=24 ldd=16 "), 2) << "a plan for each problem: " << text.str();
}

// What hgemm-bench has no words for has one that it refuses.
TEST_F(Log, names_no_other_product)
{
    const std::vector<std::pair<const char*, void (*)(hgemm_args_t&)>> cases = {
        {"", [](hgemm_args_t&) {}},
        {" --output f32", [](hgemm_args_t& g) { g.type_c = g.type_d = HGEMM_F32; }},
        {" --output mixed_types", [](hgemm_args_t& g) { g.type_d = HGEMM_BF16; }},
        {" --output mixed_types+beta",
         [](hgemm_args_t& g) { g.beta = 1, g.c = g.a, g.type_c = HGEMM_F32; }},
        {" --output beta", [](hgemm_args_t& g) { g.beta = 1; }},
        {" --output bias", [](hgemm_args_t& g) { g.bias = g.a, g.bias_mode = HGEMM_BIAS_M; }},
        {" --output bias_rows", [](hgemm_args_t& g) { g.bias = g.a, g.bias_mode = HGEMM_BIAS_N; }},
        {" --output gated+silu",
         [](hgemm_args_t& g) { g.gate.block = g.m / 2, g.activation = HGEMM_ACTIVATION_SILU; }},
        {" --output gate",
         [](hgemm_args_t& g) {
             g.gate = {g.m / 2, 7, 0, 0, 0};
         }},
        {" --output gate", [](hgemm_args_t& g) { g.gate.block = 1; }},
        {" --output gelu", [](hgemm_args_t& g) { g.activation = HGEMM_ACTIVATION_GELU_TANH; }},
        {" --output gelu_erf", [](hgemm_args_t& g) { g.activation = HGEMM_ACTIVATION_GELU_ERF; }}};
    std::vector<uint16_t> matrix(3 * 256);
    for (const auto& [output, change] : cases) {
        std::remove(path.c_str());
        hgemm_args_t args;
        hgemm_args_init(&args, sizeof args);
        args.m = args.n = args.k = args.lda = args.ldb = args.ldc = args.ldd = 8;
        args.a = args.b = matrix.data();
        args.c = args.d = matrix.data() + 512;
        change(args);
        const hgemm_handle_t handle = create("trace");
        EXPECT_EQ(hgemm_gemm_ex(handle, &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(contains(read(path), std::string("8x8x8 --dtype f16 --layout tt") + output + '\n'))
            << output << '\n'
            << read(path);
    }
}

TEST_F(Log, is_appended_to_by_a_file_that_only_its_owner_may_write)
{
    std::ofstream(path) << "before\n";
    EXPECT_EQ(on_standard_error(), "");
    EXPECT_EQ(read(path).find("before\nhgemm: error "), 0u) << read(path);
    std::remove(path.c_str());
    const mode_t mask = umask(0);
    EXPECT_EQ(on_standard_error(), "");
    umask(mask);
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST_F(Log, refuses_what_is_no_regular_file)
{
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    refuses_the_file("Is a directory");
    ASSERT_EQ(rmdir(path.c_str()), 0);
    path += "/of/nothing";
    refuses_the_file("No such file or directory");
    path = "/dev/null";
    refuses_the_file("not a regular file");
    path = folder + "/log";
}

TEST_F(Log, refuses_a_file_that_it_may_not_write)
{
    std::ofstream(path) << "";
    ASSERT_EQ(chmod(path.c_str(), 0444), 0);
    ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
    const uid_t user = geteuid(), nobody = 65534;
    if (user == 0) {  // who may write anything
        ASSERT_EQ(seteuid(nobody), 0);
    }
    refuses_the_file("Permission denied");
    ASSERT_EQ(seteuid(user), 0);
}

TEST_F(Log, does_not_wait_for_a_pipe)
{
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_TRUE(succeeds_in_child([&] {
        close(STDERR_FILENO);
        const hgemm_handle_t handle = create("error");
        return hgemm_destroy(handle) == HGEMM_STATUS_SUCCESS;
    })) << "hangs";
    refuses_the_file("No such device or address");
    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    refuses_the_file("not a regular file");
    close(reader);
}

TEST_F(Log, follows_a_link_to_a_file)
{
    std::ofstream(folder + "/other") << "";
    ASSERT_EQ(symlink((folder + "/other").c_str(), path.c_str()), 0);
    EXPECT_EQ(on_standard_error(), "");
    EXPECT_TRUE(contains(read(folder + "/other"), "hgemm: error ")) << read(folder + "/other");
}

TEST_F(Log, of_an_unknown_level_is_refused)
{
    hgemm_handle_t handle = nullptr;
    for (const char* level : {"loud", "ERROR", "1", "plan ", "\n"}) {
        const Variable variable("HGEMM_LOG", level);
        EXPECT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_NOT_SUPPORTED);
        EXPECT_EQ(handle, nullptr);
        const std::string named = *level == '\n' ? "\\x0a" : level;
        EXPECT_EQ(hgemm_last_error(), "hgemm_create_on: unknown level '" + named +
                                          "' (HGEMM_LOG), known: off error plan trace");
    }
    EXPECT_EQ(hgemm_destroy(create("off")), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(read(path), "");
}

TEST_F(Log, stays_one_line_whatever_a_value_holds)
{
    const Variable level("HGEMM_LOG", "error"), file("HGEMM_LOG_FILE", path);
    const Variable kernel("HGEMM_KERNEL", "x\nr::0:0:::\n\x1b[2J\x7f");
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_NOT_SUPPORTED);
    const std::string escaped = "'x\\x0ar::0:0:::\\x0a\\x1b[2J\\x7f'";
    EXPECT_TRUE(contains(hgemm_last_error(), escaped)) << hgemm_last_error();
    const std::string text = read(path);
    EXPECT_EQ(text, "hgemm: error HGEMM_STATUS_NOT_SUPPORTED: " + std::string(hgemm_last_error()) + "\n");
    const Variable backend("HGEMM_BACKEND", "a\tb\n");
    EXPECT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_TRUE(contains(hgemm_last_error(), "'a\\x09b\\x0a'")) << hgemm_last_error();
}

TEST_F(Log, has_the_whole_text_of_the_longest_error)
{
    const Variable level("HGEMM_LOG", "error"), file("HGEMM_LOG_FILE", path), kernel("HGEMM_KERNEL", "?");
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(read(path),
              "hgemm: error HGEMM_STATUS_NOT_SUPPORTED: " + std::string(hgemm_last_error()) + "\n");
}

// What a logger was given.
struct Lines {
    static void add(void* data, const char* line)
    {
        auto* const lines = static_cast<Lines*>(data);
        const std::lock_guard lock(lines->mutex);
        lines->list.push_back(line);
    }
    bool has(const std::string& part) const
    {
        for (const std::string& line : list)
            if (contains(line, part))
                return true;
        return false;
    }
    std::mutex mutex;
    std::vector<std::string> list;
};

class Logger : public Log {
protected:
    ~Logger() override { hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr); }
    void fail(hgemm_handle_t handle)
    {
        EXPECT_EQ(hgemm_set_sm_count(handle, -7), HGEMM_STATUS_INVALID_ARGUMENT);
    }
};

TEST_F(Logger, gets_what_later_handles_log_instead_of_the_file)
{
    Lines lines;
    const hgemm_handle_t earlier = create("error");
    ASSERT_EQ(hgemm_set_logger(HGEMM_LOG_PLAN, Lines::add, &lines), HGEMM_STATUS_SUCCESS);
    const hgemm_handle_t handle = create("loud");
    fail(handle);
    fail(earlier);
    EXPECT_EQ(hgemm_set_logger(HGEMM_LOG_OFF, nullptr, &lines), HGEMM_STATUS_SUCCESS);
    const hgemm_handle_t later = create("error");
    fail(later);
    fail(handle);
    ASSERT_EQ(lines.list.size(), 3u);
    EXPECT_EQ(lines.list[0], "handle on the host, backend host");
    EXPECT_EQ(lines.list[1],
              "error HGEMM_STATUS_INVALID_ARGUMENT: hgemm_set_sm_count: argument 2 (count) is -7, "
              "must be at least 0");
    EXPECT_EQ(lines.list[2], lines.list[1]);
    const std::string once = "hgemm: " + lines.list[1] + "\n";
    EXPECT_EQ(read(path), once + once);
    for (const hgemm_handle_t h : {earlier, handle, later})
        EXPECT_EQ(hgemm_destroy(h), HGEMM_STATUS_SUCCESS);
}

TEST_F(Logger, gets_what_its_level_says)
{
    uint16_t a[64] = {}, b[64] = {}, c[64];
    const auto run = [&](hgemm_log_level_t level, Lines& lines) {
        EXPECT_EQ(hgemm_set_logger(level, Lines::add, &lines), HGEMM_STATUS_SUCCESS);
        const hgemm_handle_t handle = create("");
        fail(handle);
        EXPECT_EQ(hgemm_nn(handle, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    };
    for (const hgemm_log_level_t level :
         {HGEMM_LOG_OFF, HGEMM_LOG_ERROR, HGEMM_LOG_PLAN, HGEMM_LOG_TRACE}) {
        Lines lines;
        run(level, lines);
        EXPECT_EQ(lines.has("error "), level >= HGEMM_LOG_ERROR);
        EXPECT_EQ(lines.has("plan row-major D"), level >= HGEMM_LOG_PLAN);
        EXPECT_EQ(lines.has("trace hgemm-bench"), level >= HGEMM_LOG_TRACE);
    }
    for (const int level : {-1, 4})
        expect_invalid(hgemm_set_logger(static_cast<hgemm_log_level_t>(level), Lines::add, nullptr), 1,
                       "hgemm_set_logger: argument 1 (level) is " + std::to_string(level));
}

TEST_F(Logger, gets_the_errors_of_creation)
{
    Lines lines;
    ASSERT_EQ(hgemm_set_logger(HGEMM_LOG_ERROR, Lines::add, &lines), HGEMM_STATUS_SUCCESS);
    const Variable backend("HGEMM_BACKEND", "a\nb");
    hgemm_handle_t handle = nullptr;
    EXPECT_EQ(hgemm_create(&handle), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_TRUE(lines.has("hgemm_create: unknown backend 'a\\x0ab' (HGEMM_BACKEND)"));
}

TEST_F(Logger, is_set_while_others_create_and_fork)
{
    Lines lines[2];
    std::vector<std::thread> threads;
    for (Lines& own : lines)
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                EXPECT_EQ(hgemm_set_logger(HGEMM_LOG_ERROR, Lines::add, &own), HGEMM_STATUS_SUCCESS);
                hgemm_handle_t handle = nullptr;
                EXPECT_EQ(hgemm_create_sized(&handle, HGEMM_DEVICE_HOST, 0), HGEMM_STATUS_SUCCESS);
                EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
            }
        });
    for (int i = 0; i < 20; ++i)
        EXPECT_TRUE(succeeds_in_child(
            [&] { return hgemm_set_logger(HGEMM_LOG_PLAN, Lines::add, nullptr) == HGEMM_STATUS_SUCCESS; }));
    for (std::thread& thread : threads)
        thread.join();
}

}  // namespace
}  // namespace hg::test
