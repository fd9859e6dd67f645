// The binary interface: what libhgemm.so exports and what it needs. How structs lie: tests/abi.
#include "hgemm.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

extern "C" const char* hgemm_header_test(void);

namespace {

// An enum holds any value that a caller may pass if its type is fixed; only such a one is made from a
// number in braces.
template <typename... Enums>
constexpr bool hold_any_value = ((static_cast<int>(Enums{-77}) == -77) && ...);
static_assert(
    hold_any_value<hgemm_status_t, hgemm_layout_t, hgemm_op_t, hgemm_type_t, hgemm_mode_t,
                   hgemm_activation_t, hgemm_bias_t, hgemm_uplo_t, hgemm_grouping_t, hgemm_log_level_t>);

std::string output_of(const std::string& command)
{
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe)
        return "";
    char part[4096];
    while (const size_t n = fread(part, 1, sizeof part, pipe))
        text.append(part, n);
    return pclose(pipe) == 0 ? text : "";
}

std::set<std::string> matches(const std::string& text, const char* pattern)
{
    const std::regex regex(pattern);
    std::set<std::string> found;
    for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i)
        found.insert((*i)[1]);
    return found;
}

std::string header()
{
    std::stringstream text;
    text << std::ifstream(HGEMM_HEADER).rdbuf();
    return text.str();
}

const std::string library = "'" HGEMM_LIBRARY "'";

TEST(Abi, exports_the_functions_of_the_header_and_nothing_else)
{
    const std::set<std::string> declared = matches(header(), R"(\nHGEMM_API [^;(]*?(\w+)\()");
    const std::string symbols = output_of("nm -D --defined-only " + library);
    std::set<std::string> expected = {"HGEMM_1"};
    for (const std::string& name : declared)
        expected.insert(name + "@@HGEMM_1");
    EXPECT_GE(declared.size(), 42u);
    EXPECT_EQ(matches(symbols, R"(\S+ [A-Z] (\S+))"), expected);
}

TEST(Abi, needs_the_c_library_alone)
{
    const std::string dynamic = output_of("readelf -dW " + library);
    EXPECT_EQ(matches(dynamic, R"(\(SONAME\).*\[(.*)\])"), std::set<std::string>{"libhgemm.so.1"});
    const std::set<std::string> system = {"libc.so.6",
                                          "libm.so.6",
                                          "libdl.so.2",
                                          "libpthread.so.0",
                                          "librt.so.1",
                                          "ld-linux-x86-64.so.2",
                                          "ld-linux-aarch64.so.1"};
    for (const std::string& name : matches(dynamic, R"(\(NEEDED\).*\[(.*)\])"))
        EXPECT_TRUE(system.count(name)) << name;
    EXPECT_TRUE(matches(dynamic, R"(\((RPATH|RUNPATH|TEXTREL)\))").empty());
}

TEST(Abi, imports_no_name_that_a_process_could_lack)
{
    const std::string symbols = output_of("nm -D --undefined-only " + library);
    EXPECT_TRUE(matches(symbols, R"(\b(cu[A-Z]\w*|cuda\w+|cblas\w+|_ZN?S\w*|__cxa_throw)\b)").empty())
        << symbols;
}

TEST(Abi, loads_without_an_executable_stack)
{
    EXPECT_EQ(matches(output_of("readelf -lW " + library), R"((GNU_STACK.*RWE))").size(), 0u);
}

TEST(Abi, header_works_from_c) { EXPECT_STREQ(hgemm_header_test(), "HGEMM_STATUS_NOT_INITIALIZED"); }

}  // namespace
