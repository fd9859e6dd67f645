// Where there is no OpenBLAS, which ctest hides by a library of its name: handles are created and compute,
// and the log says it.
#include "../conformance.hpp"
#include "../library.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hg::test {
namespace {

TEST(OpenBlasMissing, TheLogSaysItOnceForAHandle)
{
    std::vector<std::string> lines;
    const auto keep = [](void* data, const char* text) {
        static_cast<std::vector<std::string>*>(data)->push_back(text);
    };
    ASSERT_EQ(hgemm_set_logger(HGEMM_LOG_PLAN, keep, &lines), HGEMM_STATUS_SUCCESS);
    const Library library(nullptr);
    hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr);
    ASSERT_TRUE(library.created()) << library.story();
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [](const std::string& line) {
                                return line.find("no OpenBLAS") != std::string::npos &&
                                       line.find("libopenblas0 (Debian, Ubuntu)") != std::string::npos;
                            }),
              1)
        << (lines.empty() ? "no line" : lines.back());
}

TEST(OpenBlasMissing, ItsKernelIsRefused)
{
    Library library(nullptr, "", "host_blocked");
    ASSERT_TRUE(library.created()) << library.story();
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.m = args.n = args.k = args.lda = args.ldb = args.ldd = 1;
    uint16_t one = 0x3c00, d = 0;
    args.a = args.b = &one;
    args.d = &d;
    EXPECT_EQ(library.run(args), HGEMM_STATUS_NOT_SUPPORTED);
    EXPECT_NE(library.story().find("host_blocked needs OpenBLAS"), std::string::npos) << library.story();
    EXPECT_EQ(d, 0);
}

class WithoutOpenBlas : public testing::TestWithParam<Family> {};

TEST_P(WithoutOpenBlas, Conforms)
{
    Library library(nullptr);
    ASSERT_TRUE(library.created()) << library.story();
    Suite suite(library, 20 * thinning());
    GetParam().run(suite);
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(, WithoutOpenBlas, testing::ValuesIn(families()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hg::test
