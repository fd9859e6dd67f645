// Reports: their classes, their order, and how many of them are told.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

Report report_of(const std::string& kind, int line)
{
    Report report;
    report.kind = kind;
    report.kernel = "k";
    report.line = line;
    return report;
}

TEST(Report, DefectsComeFirst)
{
    std::vector<Report> reports = {report_of("setmaxnreg", 1), report_of("missing-init-fence", 2),
                                   report_of("race", 3)};
    for (int line = 4; line < 28; ++line)
        reports.push_back(report_of("missing-init-fence", line));
    for (int line = 28; line < 40; ++line)
        reports.push_back(report_of("race", line));
    const std::vector<std::string> texts = digest(reports);
    ASSERT_EQ(texts.size(), 12u);
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(texts[i].find("race (defect): "), 0u) << texts[i];
    EXPECT_EQ(texts[8], "race (defect): 5 more in k, lines 35, 36, 37, 38, 39");
    EXPECT_EQ(texts[9].find("missing-init-fence (departs from the document): \n  in k, line 2"), 0u)
        << texts[9];
    EXPECT_EQ(texts[10].find("missing-init-fence (departs from the document): 24 more in k, lines 4, 5, "),
              0u)
        << texts[10];
    EXPECT_EQ(texts[11].find("setmaxnreg (harmless): "), 0u) << texts[11];
}

TEST(Report, StrictnessTellsClassesApart)
{
    for (const auto& [kind, document, defects] : {std::tuple("race", true, true),
                                                  {"missing-init-fence", true, false},
                                                  {"unwaited-copy", false, false}}) {
        EXPECT_EQ(fails(class_of(kind), Strict::Document), document) << kind;
        EXPECT_EQ(fails(class_of(kind), Strict::Defects), defects) << kind;
        EXPECT_FALSE(fails(class_of(kind), Strict::Off)) << kind;
    }
    EXPECT_THROW(class_of("nonsense"), std::logic_error);
    Reports reports;
    EXPECT_THROW(reports.add(report_of("nonsense", 1)), std::logic_error);
    reports.add(report_of("race", 1));
    reports.add(report_of("race", 1));
    reports.add(report_of("unwaited-copy", 1));
    EXPECT_EQ(reports.places(), (ReportCounts{1, 0, 1}));
    EXPECT_EQ(reports.times(), (ReportCounts{2, 0, 1}));
    EXPECT_EQ(tally(reports.times()), "2 defects, 0 departures from the document, 1 harmless");
}

// An mbarrier, and 16 bytes of data of its own: both are written by the thread and used by the async proxy.
std::string bulk_kernel(const std::string& after_init, const std::string& before_store)
{
    return ptx_kernel("sm_90a", 1, R"(
.shared .align 128 .b8 box[128];
.shared .align 8 .b64 bar;
setp.eq.u32 %p0, %r0, 0;
@!%p0 bra END;
mov.u32 %r2, box;
mov.u32 %r4, bar;
mbarrier.init.shared::cta.b64 [%r4], 1;
)" + after_init + R"(
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 16, [%r4];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
@!%p1 bra WAIT;
st.shared.u32 [%r2], 5;
)" + before_store + R"(
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:)");
}

TEST(Report, FencesOfBarriersAndOfDataAreToldApart)
{
    const std::string fence = "fence.proxy.async.shared::cta;";
    for (const auto& [init, store, expected] : {std::tuple(fence, fence, ""),
                                                {std::string(), fence, "missing-init-fence"},
                                                {fence, std::string(), "missing-proxy-fence"}}) {
        Device device(90);
        const uint64_t data = device.put(std::vector<uint32_t>(4));
        EXPECT_EQ(device.run(bulk_kernel(init, store), shape_of(1, 32), {data}), expected)
            << device.message();
    }
}

TEST(Report, CopiesUnderWayAtTheExitAreHarmless)
{
    std::string copies;
    for (int i = 0; i < 8; ++i)
        copies += "cp.async.cg.shared.global [%r2+" + std::to_string(16 * i) + "], [%rd0], 16;\n";
    const std::string kernel = ".shared .align 128 .b8 box[128];\nmov.u32 %r2, box;\n" + copies;
    for (const auto& [wait, expected] :
         {std::pair("END:", "unwaited-copy"), {"cp.async.wait_all; END:", ""}}) {
        Device device(80);
        const uint64_t data = device.put(std::vector<uint32_t>(4));
        EXPECT_EQ(device.run(ptx_kernel("sm_80", 1, kernel + wait), shape_of(1, 1), {data}), expected)
            << device.message();
    }
}

}  // namespace
}  // namespace emu
