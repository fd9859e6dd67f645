// Errors of the CBLAS functions, threads, a forked child, and what the library exports.
#include "hgemm_cblas.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr uint16_t one = 0x3c00, two = 0x4000;  // fp16

struct Report {
    std::string function, message;
    int argument = -1, count = 0;
} seen;

void remember(const char* function, int argument, const char* message)
{
    seen = {function, message, argument, seen.count + 1};
}

// A call with right arguments, but for what a test changes.
struct Arguments {
    int layout = 101, transa = 111, transb = 112, m = 2, n = 3, k = 4, lda = 4, ldb = 4, ldc = 3;
    bool null_a = false, null_b = false, null_c = false;

    std::vector<uint16_t> call() const
    {
        const std::vector<uint16_t> a(8, one), b(12, two);
        std::vector<uint16_t> c(6, one);
        cblas_hgemm(static_cast<hgemm_layout_t>(layout), static_cast<hgemm_op_t>(transa),
                    static_cast<hgemm_op_t>(transb), m, n, k, one, null_a ? nullptr : a.data(), lda,
                    null_b ? nullptr : b.data(), ldb, one, null_c ? nullptr : c.data(), ldc);
        return c;
    }
};

class CblasErrors : public testing::Test {
protected:
    void SetUp() override
    {
        seen = {};
        hgemm_cblas_set_handler(remember);
    }
    void TearDown() override { hgemm_cblas_set_handler(nullptr); }

    void expect_refusal(const Arguments& arguments, int position, const std::string& text)
    {
        seen = {};
        EXPECT_EQ(arguments.call(), std::vector<uint16_t>(6, one)) << "C was written";
        EXPECT_EQ(hgemm_cblas_status(), HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(seen.count, 1);
        EXPECT_EQ(seen.function, "cblas_hgemm");
        EXPECT_EQ(seen.argument, position) << seen.message;
        EXPECT_EQ(seen.message, text);
    }
};

TEST_F(CblasErrors, right_arguments_are_accepted)
{
    EXPECT_EQ(Arguments{}.call(), std::vector<uint16_t>(6, 0x4880));  // 4 * 2 + 1 = 9
    EXPECT_EQ(hgemm_cblas_status(), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(seen.count, 0);
}

TEST_F(CblasErrors, each_wrong_argument_is_named)
{
    const std::string f = "cblas_hgemm: argument ";
    const std::string ops = "must be 111 (NO_TRANS), 112 (TRANS) or 113 (CONJ_TRANS)";
    expect_refusal({.layout = 100}, 1,
                   f + "1 (layout) is 100, must be 101 (row-major) or 102 (column-major)");
    expect_refusal({.transa = 110}, 2, f + "2 (transa) is 110, " + ops);
    expect_refusal({.transb = 115}, 3, f + "3 (transb) is 115, " + ops);
    expect_refusal({.m = -1}, 4, f + "4 (m) is -1, must be at least 0");
    expect_refusal({.n = -2}, 5, f + "5 (n) is -2, must be at least 0");
    expect_refusal({.k = -3}, 6, f + "6 (k) is -3, must be at least 0");
    expect_refusal({.null_a = true}, 8, f + "8 (A) is NULL, must point to its elements");
    expect_refusal({.lda = 3}, 9, f + "9 (lda) is 3, must be at least k = 4");
    expect_refusal({.null_b = true}, 10, f + "10 (B) is NULL, must point to its elements");
    expect_refusal({.ldb = 3}, 11, f + "11 (ldb) is 3, must be at least k = 4");
    expect_refusal({.null_c = true}, 13, f + "13 (C) is NULL, must point to its elements");
    expect_refusal({.ldc = 2}, 14, f + "14 (ldc) is 2, must be at least n = 3");
}

TEST_F(CblasErrors, nothing_is_computed_without_elements)
{
    const Arguments empty{.m = 0, .null_a = true, .null_b = true, .null_c = true};
    empty.call();
    EXPECT_EQ(hgemm_cblas_status(), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(seen.count, 0);
}

TEST_F(CblasErrors, handler_is_given_back)
{
    EXPECT_EQ(hgemm_cblas_set_handler(nullptr), remember);
    Arguments{.m = -1}.call();
    EXPECT_EQ(seen.count, 0);
    EXPECT_EQ(hgemm_cblas_status(), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_cblas_set_handler(remember), nullptr);
}

TEST(Cblas, conjugate_without_transpose_is_no_transpose)
{
    const uint16_t a[] = {one, two}, b[] = {one, one};
    float c = 0;
    cblas_shgemm(HGEMM_ROW_MAJOR, static_cast<hgemm_op_t>(114), static_cast<hgemm_op_t>(114), 1, 1, 2, 1, a,
                 2, b, 1, 0, &c, 1);
    EXPECT_EQ(c, 3);
}

TEST(Cblas, threads_compute_at_the_same_time)
{
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&wrong, t] {
            for (int i = 0; i < 200; ++i)
                wrong[t] += Arguments{}.call() != std::vector<uint16_t>(6, 0x4880);
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Cblas, a_forked_child_computes)
{
    Arguments{}.call();
    const pid_t child = fork();
    if (child == 0)
        _exit(Arguments{}.call() == std::vector<uint16_t>(6, 0x4880) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Cblas, exports_the_functions_of_the_header_and_nothing_else)
{
    const auto matches = [](const std::string& text, const char* pattern) {
        const std::regex regex(pattern);
        std::set<std::string> found;
        for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i)
            found.insert((*i)[1]);
        return found;
    };
    std::stringstream header;
    header << std::ifstream(CBLAS_HEADER).rdbuf();
    FILE* pipe = popen("nm -D --defined-only '" CBLAS_LIBRARY "'", "r");
    ASSERT_NE(pipe, nullptr);
    std::string symbols(1 << 16, '\0');
    symbols.resize(fread(symbols.data(), 1, symbols.size(), pipe));
    pclose(pipe);
    const auto declared = matches(header.str(), R"(\nHGEMM_API [^;(]*?(\w+)\()");
    EXPECT_EQ(declared.size(), 8u);
    EXPECT_EQ(matches(symbols, R"(\S+ [A-Z] (\S+))"), declared);
}

}  // namespace
