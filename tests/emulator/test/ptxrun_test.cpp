// ptxrun as it is called: what it prints, and that it says what is wrong with its input and where.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

const char* const kernel = R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
.shared .align 16 .b8 tile[4096];
ld.param.u64 %rd0, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, tile;
mov.u32 %r0, %tid.x;
mad.lo.u32 %r2, %r0, 8, %r2;
st.shared.u32 [%r2], %r1;
bar.sync 0;
ld.shared.u32 %r3, [%r2];
st.global.u32 [%rd0], %r3;
ret;
}
)";

struct Outcome {
    int status;
    std::string text;
};

// Runs ptxrun on a PTX text in a file of its own.
Outcome ptxrun(const std::string& ptx, const std::string& arguments, const std::string& environment = "")
{
    const std::string file = testing::TempDir() + "ptxrun_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptx";
    std::ofstream(file) << ptx;
    const std::string command = environment + " " EMU_PTXRUN " " + file + " " + arguments + " 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    Outcome outcome{-1, ""};
    char part[256];
    while (pipe && std::fgets(part, sizeof part, pipe))
        outcome.text += part;
    if (pipe)
        outcome.status = WEXITSTATUS(pclose(pipe));
    std::remove(file.c_str());
    return outcome;
}

std::string with(const std::string& from, const std::string& to)
{
    std::string text = kernel;
    return text.replace(text.find(from), from.size(), to);
}

const std::string arguments = "--arg buf:x:64 --arg u32:7 ";

void expect_refusal(const Outcome& outcome, const std::string& what, const std::string& place)
{
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(what), std::string::npos) << what << " in " << outcome.text;
    EXPECT_NE(outcome.text.find(".ptx:" + place), std::string::npos) << place << " in " << outcome.text;
}

TEST(Ptxrun, RunsAndPrintsStatistics)
{
    const Outcome outcome = ptxrun(kernel, arguments + "--block 32");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    for (const char* part :
         {"k ran in", "0 defects, 0 departures from the document, 0 harmless",
          "shared memory: 2 accesses, 4 wavefronts of at least 2, degree 2.00",
          "1 accesses, 2 wavefronts of at least 1, degree 2.00, line 14: st.shared.u32 [%r2], %r1;"})
        EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " in " << outcome.text;
}

TEST(Ptxrun, FailsOnHazards)
{
    const Outcome outcome = ptxrun(with("bar.sync 0", "xor.b32 %r2, %r2, 256"), arguments + "--block 64");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("line 16: ld.shared.u32 %r3, [%r2]"), std::string::npos) << outcome.text;
}

TEST(Ptxrun, ChecksGlobalMemoryOnRequest)
{
    EXPECT_EQ(ptxrun(kernel, arguments + "--grid 2").status, 0);
    const Outcome outcome = ptxrun(kernel, arguments + "--grid 2", "EMU_CHECK=3");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("line 17: st.global.u32 [%rd0], %r3"), std::string::npos) << outcome.text;
}

TEST(Ptxrun, TakesNumbersOfTheParametersType)
{
    EXPECT_EQ(ptxrun(kernel, "--arg buf:x:64 --arg 7 --block 32").status, 0);
    EXPECT_EQ(ptxrun(with(".u32 n", ".f32 n"), "--arg buf:x:64 --arg 1.5").status, 0);
    EXPECT_EQ(ptxrun(with(".u32 n", ".s32 n"), "--arg buf:x:64 --arg=-7").status, 0);
    expect_refusal(ptxrun(kernel, "--arg buf:x:64 --arg 1.5"), "'1.5' is no integer", "4: ");
    expect_refusal(ptxrun(with(".u32 n", ".align 4 .b8 n[8]"), "--arg buf:x:64 --arg 7"),
                   "'7' describes no argument", "4: ");
}

// It ends the launch, and may be why the rest was found.
TEST(Ptxrun, TellsAFaultBeforeTheReports)
{
    const Outcome outcome =
        ptxrun(with("ld.shared.u32 %r3, [%r2];", "ld.shared.u32 %r3, [%r2+1024];\ntrap;"),
               arguments + "--block 32");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    const size_t fault = outcome.text.find("fault: trap"),
                 report = outcome.text.find("uninitialised-read (defect)");
    EXPECT_LT(fault, report) << outcome.text;
    EXPECT_NE(report, std::string::npos) << outcome.text;
}

TEST(Ptxrun, TellsOfNewerPtx)
{
    const Outcome newer = ptxrun(with(".version 9.0", ".version 12.4"), arguments);
    EXPECT_EQ(newer.status, 0) << newer.text;
    EXPECT_NE(newer.text.find(".ptx: .version 12.4 is newer than PTX 9.0"), std::string::npos)
        << newer.text;
    EXPECT_EQ(ptxrun(kernel, arguments).text.find("newer"), std::string::npos);
}

TEST(Ptxrun, RefusesBadText)
{
    const auto changed = [](const std::string& from, const std::string& to) {
        return ptxrun(with(from, to), arguments);
    };
    expect_refusal(changed("%r2, tile;", "%r2 tile;"),
                   "expected ',' or ';', found 'tile': mov.u32 %r2 tile;", "11: ");
    expect_refusal(changed("bar.sync", "bra.sink"), "unknown modifier '.sink': bra.sink 0;", "15: ");
    expect_refusal(changed("mad.lo.u32", "dp9a.u32"), "unknown instruction 'dp9a.u32': dp9a.u32 %r2,",
                   "13: ");
    expect_refusal(changed("[%rd0], %r3", "[%rd0], %rd9"), "'%rd9' is not declared: st.global.u32 [%rd0]",
                   "17: ");
    expect_refusal(ptxrun("garbage", arguments), "expected a directive", "1: ");
}

TEST(Ptxrun, ListsAllThatIsRefused)
{
    EXPECT_EQ(ptxrun(kernel, "--refused").status, 0);
    const Outcome outcome = ptxrun(R"(.version 9.0
.target sm_80
.address_size 64
.alias one, two;
.visible .entry k(.param .u64 p)
{
.reg .v8 .b32 wide;
.reg .b32 %r<8>;
dp9a.u32 %r1, %r2, %r3;
add.u32 %r1 %r2, %r3;
mov.b32 %r1, [;
add.u32 %r1, %r2, %r3;
{ .surprise 5; }
ret;
}
.global .b33 unknown[4];
.visible .entry second() { bra NOWHERE; }
)",
                                   "--refused");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    for (const char* part :
         {"ptx:4: unknown directive '.alias'", "ptx:7: '.v8' is no register type",
          "ptx:9: unknown instruction 'dp9a.u32'", "ptx:10: expected ',' or ';'", "ptx:11: unexpected ';'",
          "ptx:13: unknown directive '.surprise'", "ptx:16: unknown '.b33' in a declaration",
          "ptx:17: ", "\n8 instructions and declarations are refused"})
        EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " in " << outcome.text;
}

TEST(Ptxrun, RefusesArguments)
{
    const std::string place = "4: .visible .entry k(";
    expect_refusal(ptxrun(kernel, "--arg buf:x:64"), "k takes 2 parameters, 1 were described", place);
    expect_refusal(ptxrun(kernel, arguments + "--arg u32:1"), "k takes 2 parameters, 3 were", place);
    expect_refusal(ptxrun(kernel, "--arg buf:x:64 --arg u64:1"), "'u64:1' has 8 bytes, the parameter 4",
                   place);
    expect_refusal(ptxrun(kernel, "--arg u32:1 --arg u32:1"), "'u32:1' has 4 bytes, the parameter 8",
                   place);
    expect_refusal(ptxrun(kernel, "--arg buf:x:64 --arg hex:zz000000"), "'zz000000' is not hexadecimal",
                   place);
    expect_refusal(ptxrun(kernel, "--arg ptr:y --arg u32:1"), "no buffer 'y'", place);
    expect_refusal(ptxrun(kernel, "--arg buf:x:64 --arg u32:many"), "'many' is no integer", place);
}

TEST(Ptxrun, RefusesLaunches)
{
    const std::string place = "4: .visible .entry k(";
    expect_refusal(ptxrun(kernel, arguments + "--smem 300000"),
                   "304096 bytes of shared memory of 232448 there are", place);
    expect_refusal(ptxrun(kernel, arguments + "--block 2048"), "block of 2048 x 1 x 1 threads", place);
    expect_refusal(ptxrun(kernel, arguments + "--grid 0"), "grid of 0 x 1 x 1 blocks", place);
    expect_refusal(ptxrun(kernel, arguments + "--grid 3 --cluster 2"), "is not a multiple of the cluster",
                   place);
    expect_refusal(ptxrun(kernel, arguments + "--grid 32 --cluster 32"), "cluster of 32 x 1 x 1 blocks",
                   place);
    expect_refusal(ptxrun(kernel, arguments + "--grid 2 --cluster 2", "EMU_ARCH=sm_80"),
                   "clusters need sm_90", place);
    expect_refusal(ptxrun(with("\n{", "\n.reqntid 64, 1, 1\n{"), arguments + "--block 32"),
                   ".reqntid asks for 64 x 1 x 1", place);
}

TEST(Ptxrun, RefusesWhatItIsAskedFor)
{
    const std::pair<const char*, const char*> cases[] = {{"--kernel other", "no kernel 'other'"},
                                                         {"--grid much", "is no size"},
                                                         {"--dump y=/dev/null", "no such buffer to dump"}};
    for (const auto& [option, why] : cases) {
        const Outcome outcome = ptxrun(kernel, arguments + option);
        EXPECT_EQ(outcome.status, 2);
        EXPECT_NE(outcome.text.find(why), std::string::npos) << outcome.text;
    }
}

}  // namespace
