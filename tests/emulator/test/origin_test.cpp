// Lines of the source in reports: .file and .loc, as nvcc -lineinfo writes them.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace emu {
namespace {

const char* const text = R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry first()
{
.reg .b32 %r<4>;
mov.u32 %r0, 1;
.loc 1 4 1
mov.u32 %r1, 2;
.loc 1 9 5
.loc 2 30 3, function_name $L__info_string0, inlined_at 1 9 5
.loc 3 7 3, function_name $L__info_string1+16, inlined_at 2 30 3
mov.u32 %r2, 3;
.loc 4 7 3
mov.u32 %r3, 3;
.loc
mov.u32 %r3, 4;
ret;
}
.visible .entry second() { .reg .b32 %r<2>;
mov.u32 %r0, 1;
ret; }
.file 1 "/home/me/main.cu"
.file 2 "sum.cuh", 1234, 5678
.file 3 "deep.cuh"
)";

std::string at(int line)
{
    static ptx::Module module = [] {
        ptx::Module parsed = ptx::parse(text, "k.ptx");
        for (const size_t i : {size_t{1}, size_t{0}})
            ptx::read_body(parsed, parsed.kernels[i]);
        return parsed;
    }();
    return ptx::brief(ptx::origins_of(module, line));
}

TEST(Origin, IsTheLastLocationOfTheBody)
{
    EXPECT_EQ(at(4), "");
    EXPECT_EQ(at(7), "");
    EXPECT_EQ(at(9), " (main.cu:4)");
    EXPECT_EQ(at(13), " (deep.cuh:7 ... from main.cu:9)");
    EXPECT_EQ(at(11), " (sum.cuh:30 from main.cu:9)");
    EXPECT_EQ(at(15), "") << "no such file";
    EXPECT_EQ(at(17), "") << "no numbers";
    EXPECT_EQ(at(21), "") << "of the body before";
}

TEST(Origin, IsInReports)
{
    const std::string file = testing::TempDir() + "origin_test.cu";
    std::ofstream(file) << "// one\n    tile[i] = 1;\n";
    Device device(80);
    const std::string kernel = ptx_kernel("sm_80", 0, R"(.shared .align 4 .b8 tile[4];
.loc 1 2 5
mov.u32 %r2, tile;
st.shared.u32 [%r2], %r0;
.loc 2 3 1
add.u32 %r3, %r2, 0;
)");
    EXPECT_EQ(device.run(kernel + ".file 1 \"" + file + "\"\n.file 2 \"gone.cu\"\n", shape_of(1, 64), {}),
              "race");
    const std::string print = device.machine().reports.all().front().print();
    EXPECT_NE(print.find("\n  " + file + ":2: tile[i] = 1;\n"), std::string::npos) << print;
    EXPECT_NE(print.find(" (origin_test.cu:2): st.shared.u32 [%r2], %r0; not ordered after write by warp"),
              std::string::npos)
        << print;
    const std::string line = json(device.machine().reports.all().front());
    EXPECT_EQ(line.find(R"({"class": "defect", "kind": "race", "kernel": "k", "text": ")"), 0u) << line;
    EXPECT_NE(
        line.find(R"("source": [{"file": ")" + file + R"(", "line": 2}], "cta": [0, 0, 0], "warp": )"),
        std::string::npos)
        << line;
    std::remove(file.c_str());
}

TEST(Origin, IsInFaults)
{
    Device device(80);
    EXPECT_EQ(
        device.run(ptx_kernel("sm_80", 0, ".loc 1 12 5\nmov.u64 %rd1, 16;\nst.global.u32 [%rd1], %r0;\n") +
                       ".file 1 \"/home/me/main.cu\"\n",
                   shape_of(1, 32), {}),
        "out-of-bounds");
    EXPECT_NE(device.message().find(" (main.cu:12): st.global.u32"), std::string::npos) << device.message();
}

}  // namespace
}  // namespace emu
