// EMU_STRICT: which classes of reports fail a launch, and in which order they are printed. Each setting in
// a process of its own.
#include "driver_fixture.hpp"

#include <cstdio>
#include <cstdlib>

using namespace emu::test;

namespace {

// A kernel that has what its name says, and one that has all.
std::string module_of(int cc)
{
    const std::string target = cc >= 90 ? "sm_90" : "sm_80";
    const auto kernel = [](const std::string& name, const std::string& body) {
        return ".visible .entry " + name + R"((.param .u64 p)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 128 .b8 tile[512];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [p];
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, tile;
    mov.u32 %r4, bar;
    setp.ne.u32 %p1, %r0, 0;
)" + body + "    ret;\n}\n";
    };
    const std::string race = "    st.shared.u32 [%r2+256], %r0;\n";
    std::string copies;
    for (int i = 0; i < 8; ++i)
        copies += "    cp.async.cg.shared.global [%r2+" + std::to_string(16 * i) + "], [%rd1], 16;\n";
    const std::string harmless = "    @%p1 bra END;\n" + copies + "END:\n";
    const std::string departure = R"(    @%p1 bra JOIN;
    mbarrier.init.shared::cta.b64 [%r4], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+128], [%rd1], 16, [%r4];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
    @!%p2 bra WAIT;
JOIN:
)";
    std::string text = ".version 8.0\n.target " + target + "\n.address_size 64\n" + kernel("defect", race) +
                       kernel("harmless", harmless);
    if (cc >= 90)
        text += kernel("departure", departure) + kernel("all", departure + race + harmless);
    return text;
}

// Ends with status 0 if the launch has this result.
[[noreturn]] void launch_strictly(const char* strict, const char* name, CUresult expected, int cc)
{
    setenv("EMU_STRICT", strict, 1);
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr memory = 0;
    bool ready = CU(cuInit)(0) == success && CU(cuDevicePrimaryCtxRetain)(&context, 0) == success &&
                 CU(cuCtxSetCurrent)(context) == success && CU(cuMemAlloc)(&memory, 16) == success &&
                 CU(cuModuleLoadData)(&module, module_of(cc).c_str()) == success &&
                 CU(cuModuleGetFunction)(&function, module, name) == success;
    void* parameters[] = {&memory};
    CUresult result = CU(cuLaunchKernel)(function, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr);
    if (result == success)
        result = CU(cuCtxSynchronize)();
    std::_Exit(ready && result == expected ? 0 : 1);
}

// Not the fixture Driver: the driver is initialised behind the setting.
class StrictDeathTest : public testing::Test {
protected:
    StrictDeathTest()
    {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        if (const char* architecture = std::getenv("EMU_ARCH"))
            cc = std::atoi(architecture + std::string("sm_").size());
    }

    int cc = 90;

    void expect(const char* strict, const char* name, bool fails, const char* printed)
    {
        const CUresult expected = fails ? CUDA_ERROR_LAUNCH_FAILED : success;
        EXPECT_EXIT(launch_strictly(strict, name, expected, cc), testing::ExitedWithCode(0), printed)
            << name << " with EMU_STRICT=" << strict;
    }
};

TEST_F(StrictDeathTest, ClassesFailOrPass)
{
    const char* const race = "race \\(defect\\): ";
    expect("0", "defect", false, race);
    expect("1", "defect", true, race);
    expect("defects", "defect", true, race);
    expect("1", "harmless", false, "unwaited-copy \\(harmless\\): ");
    if (cc < 90)
        return;
    const char* const departure = "missing-init-fence \\(departs from the document\\): ";
    expect("0", "departure", false, departure);
    expect("1", "departure", true, departure);
    expect("defects", "departure", false, departure);
    expect("defects", "all", true, "^race(.|\n)*\nmissing-init-fence(.|\n)*\nunwaited-copy");
}

TEST_F(StrictDeathTest, OtherSettingsAreRefused)
{
    EXPECT_EXIT((setenv("EMU_STRICT", "yes", 1), std::_Exit(CU(cuInit)(0) != success ? 0 : 1)),
                testing::ExitedWithCode(0), "EMU_STRICT=yes is neither 0 nor 1 nor defects");
}

}  // namespace
