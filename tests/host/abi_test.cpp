// The binary interface: what libhgemm.so exports, what it needs, how its structs lie.
#include "hgemm.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

extern "C" const char* hgemm_header_test(void);

namespace {

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
    EXPECT_GE(declared.size(), 38u);
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

#define AT(type, member, offset)                                                                           \
    static_assert(offsetof(type, member) == (offset), #type "::" #member " has moved")

static_assert(sizeof(void*) == 8 && sizeof(hgemm_type_t) == 4);
AT(hgemm_args_t, size, 0);
AT(hgemm_args_t, layout, 8);
AT(hgemm_args_t, transa, 12);
AT(hgemm_args_t, transb, 16);
AT(hgemm_args_t, type_ab, 20);
AT(hgemm_args_t, type_c, 24);
AT(hgemm_args_t, type_d, 28);
AT(hgemm_args_t, m, 32);
AT(hgemm_args_t, n, 40);
AT(hgemm_args_t, k, 48);
AT(hgemm_args_t, alpha, 56);
AT(hgemm_args_t, beta, 60);
AT(hgemm_args_t, alpha_device, 64);
AT(hgemm_args_t, beta_device, 72);
AT(hgemm_args_t, a, 80);
AT(hgemm_args_t, lda, 88);
AT(hgemm_args_t, b, 96);
AT(hgemm_args_t, ldb, 104);
AT(hgemm_args_t, c, 112);
AT(hgemm_args_t, ldc, 120);
AT(hgemm_args_t, d, 128);
AT(hgemm_args_t, ldd, 136);
AT(hgemm_args_t, batch_count, 144);
AT(hgemm_args_t, stride_a, 152);
AT(hgemm_args_t, stride_d, 176);
AT(hgemm_args_t, a_array, 184);
AT(hgemm_args_t, d_array, 208);
AT(hgemm_args_t, bias_mode, 216);
AT(hgemm_args_t, bias_type, 220);
AT(hgemm_args_t, bias, 224);
AT(hgemm_args_t, stride_bias, 232);
AT(hgemm_args_t, activation, 240);
AT(hgemm_args_t, aux, 248);
AT(hgemm_args_t, ldaux, 256);
AT(hgemm_args_t, stride_aux, 264);
AT(hgemm_args_t, flags, 272);
static_assert(sizeof(hgemm_args_t) == 280);
AT(hgemm_grouped_args_t, size, 0);
AT(hgemm_grouped_args_t, grouping, 8);
AT(hgemm_grouped_args_t, transb, 12);
AT(hgemm_grouped_args_t, type_ab, 16);
AT(hgemm_grouped_args_t, type_d, 20);
AT(hgemm_grouped_args_t, group_count, 24);
AT(hgemm_grouped_args_t, m, 32);
AT(hgemm_grouped_args_t, alpha, 56);
AT(hgemm_grouped_args_t, beta, 60);
AT(hgemm_grouped_args_t, a, 64);
AT(hgemm_grouped_args_t, b, 88);
AT(hgemm_grouped_args_t, d, 112);
AT(hgemm_grouped_args_t, offsets, 136);
AT(hgemm_grouped_args_t, counts, 144);
AT(hgemm_grouped_args_t, problems, 152);
static_assert(sizeof(hgemm_grouped_args_t) == 160);

}  // namespace
